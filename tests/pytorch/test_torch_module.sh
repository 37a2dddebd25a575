# SPDX-License-Identifier: MIT-0
# test_torch_module.sh: tests examples/torch as a user of PyTorch would: gradients, types, layouts, threads, errors, files, and the
# header's plans to the bit. Its training example runs to the end, and the reader of the examples reads its ONNX files.
CC=${CC:-cc}
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
out=build/torch_module
. tools/verdict.sh
python=$(python_with torch,numpy)
if [ -z "$python" ]; then echo "skip the module for PyTorch: $no_torch"; exit 0; fi
rm -rf $out
mkdir -p $out
torch_libraries
$CC -std=c99 -O1 $WARNINGS tools/torch_plan.c ${IMPLEMENTATION:-tools/lgelu.c} -o $out/plan -lm || exit 1
$out/plan > $out/plans || exit 1
PYTHONPATH=../examples/torch PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH PYTHONDONTWRITEBYTECODE
$python tools/torch_module.py $out/plans $out > $out/log 2> $out/err
status=$?
cat $out/log
if [ $status != 0 ] && ! grep -q '^FAIL' $out/log; then echo "FAIL the module's tests end: $(tail -n 1 $out/err)"; fi
[ $status = 0 ] || bad=1

# The table of converted networks, after some steps of training, with the images of the repository and a short text. convert.py stops
# where PyTorch and reluize disagree about a score.
echo "# the table of examples/torch/convert.py"
$python tools/torch_convert.py 2> $out/err || bad=1
[ -s $out/err ] && { echo "FAIL convert.py's intervals: $(tail -n 1 $out/err)"; bad=1; }
$CC -std=c99 -O1 $RELUIZE ${IMPLEMENTATION:-tools/lgelu.c} -o $out/reluize -lm || exit 1
evaluator=$(echo $RELUIZE | tr ' ' '\n' | grep -E '/(onnx_run.*|onnx_graph|int8_product|int8_planes|npy|output)[.]')
$CC -std=c99 -O1 ../examples/reluize/app/onnx_run_main.c ../examples/reluize/app/onnx_program.c $evaluator ${IMPLEMENTATION:-tools/lgelu.c} -o $out/onnx_run -lm || exit 1
mkdir -p $out/data/text
head -c 10000 ../examples/common/data.c > $out/data/text/tinyshakespeare.txt
$python ../examples/torch/convert.py --data $out/data --only 'mlp-silu|gpt4x128-silu' --short --seeds 2 --out $out/converted \
    --reluize $out/reluize > $out/table 2> $out/err
verdict $? "convert.py: PyTorch and reluize have the same scores" "$(tail -n 1 $out/err)"
# Cells: 2 network, 4 smooth, 6 statistics, which these have not, 9 gain with its interval, 11 flips, none for a GPT that has hardly learned.
awk -F ' *[|] *' 'NR > 2 { split($11, flips, " → "); n += ($2 ~ /SiLU/ && $4 > 0 && $6 == "" && $9 ~ /[(].* to .*[)]/ && (flips[2] < flips[1] || $2 ~ /GPT/)) }
    END { exit !(NR == 4 && n == 2) }' $out/table
verdict $? "convert.py: a row for each network; a refit flips fewer predictions than a cold swap" "$(tail -n 1 $out/table)"

# More ReLUs a gate: after two epochs a network learns little, but refits with three ReLUs are nearer to it than cold swaps with one.
relus="$python ../examples/torch/relus.py --data $out/data --short --reluize $out/reluize --out $out/relus"
$relus --only 'sine|mlp-silu' --seeds 2 --svg $out/relus/loss.svg > $out/relus.table 2> $out/err
verdict $? "relus.py: a table of ReLUs a gate" "$(tail -n 1 $out/err)"
sed 's/^/# /' $out/relus.table
# rise ARM: of each network, from the tables that begin with its score: the divergence of images first, then the loss of the others
rise()
{
    awk -F ' *[|] *' -v arm="$1" '/^\| network \| smooth, epochs/ { for (k = 1; k <= NF; k++) if ($k == arm) column = k; next }
        /^$/ { column = 0 } column && !/^\| ---/ { print $column + 0 }' $out/relus.table | paste -sd' '
}
echo "$(rise 'cold 1') $(rise 'refit 3')" | awk '{ exit !(NF == 6 && $1 > 4 * $4 && $2 > 9 * $5 && $3 > 9 * $6) }'
verdict $? "relus.py: three ReLUs and a refit change the loss less than one ReLU" "$(rise 'cold 1') and $(rise 'refit 3')"
other=$($python tools/figures_check.py $out/relus/loss.svg)
verdict $? "relus.py: the figure can be read" "$other"
other=$($python - $out/relus/mlp-silu-1.json << 'EOF'
import json, sys
arms = json.load(open(sys.argv[1]))["arms"]
fewest, cold = arms["within"], arms["cold 1"]
if not (1 <= fewest["relus"] <= 6 and fewest["divergence"] < cold["divergence"] / 4 and fewest["flips"] < cold["flips"]):
    print(fewest, cold)
EOF
)
verdict $([ -z "$other" ]; echo $?) "relus.py: the network of reluize --within is nearer than a cold swap" "$other"

$relus --only '^sine' --seeds 1 --steps 20 > $out/steps.table 2> $out/err
sed 's/^/# /' $out/steps.table
awk -F ' *[|] *' '{ apart[$3] = $6 } END { exit !(NR > 5 && apart["refit, 20 steps"] < apart["cold, 20 steps"] && apart["refit, 3 ReLUs"] > 0) }' $out/steps.table
verdict $? "relus.py: a table of refits with steps of distillation, nearer than steps alone" "$(tail -n 1 $out/err)"

# What has been run is not run again; what was trained is converted again, with the same result; a training that was stopped continues; an
# arm that is missing is added.
cp -r $out/relus $out/again
rm $out/again/sine-gelu-1.json
$python - $out/again/sine-gelu-2.json << 'EOF'
import json, sys
result = json.load(open(sys.argv[1]))
del result["arms"]["refit 6"]
result["arms"]["cold 1"]["rise"] = 7
json.dump(result, open(sys.argv[1], "w"))
EOF
$python ../examples/torch/relus.py --only '^sine-gelu' --seeds 0 --out $out/again --svg $out/again/part.svg > $out/relus.table 2> $out/err &&
    awk -F ' *[|] *' '/^\|/ && ++row == 3 { good = $2 ~ /one seed/ && $4 == "+7.00" && $8 != "" && $9 == "" } END { exit !good }' $out/relus.table
verdict $? "relus.py: with --seeds 0 what is there is shown, an arm that is missing as an empty cell" "$(tail -n 1 $out/err $out/relus.table)"
relus="$python ../examples/torch/relus.py --data $out/data --short --reluize $out/reluize --out $out/again"
$relus --only '^sine-gelu' --seeds 2 > /dev/null 2> $out/err
verdict $([ ! -s $out/err ]; echo $?) "relus.py: nothing is trained twice" "$(tail -n 1 $out/err)"
other=$($python - $out/relus/sine-gelu-1.json $out/again/sine-gelu-1.json << 'EOF'
import json, sys
first, second = (json.load(open(name))["arms"] for name in sys.argv[1:])
print(*(arm for arm in first if arm[0] in "crb" and first[arm]["rise"] != second[arm]["rise"]))
EOF
)
verdict $([ -z "$other" ]; echo $?) "relus.py: a network from its file is converted to the same numbers" "$other"
other=$($python - $out/relus/sine-gelu-2.json $out/again/sine-gelu-2.json << 'EOF'
import json, sys
first, second = (json.load(open(name))["arms"] for name in sys.argv[1:])
same = [arm for arm in first if second.get(arm, {}).get("rise") == first[arm]["rise"]]
if sorted(same + ["cold 1"]) != sorted(first) or second["cold 1"]["rise"] != 7:
    print(same)
EOF
)
verdict $([ -z "$other" ]; echo $?) "relus.py: an arm that is missing is added, the others stay" "$other"
$relus --only '^llama-silu' --seeds 1 --train 2> $out/err
verdict $([ -s $out/again/llama-silu-1.pt ] && [ -s $out/again/llama-silu-1.onnx ]; echo $?) "relus.py: a Llama-like network is trained and exported" \
    "$(tail -n 1 $out/err)"
$python - $out << 'EOF'
import os, sys, torch
sys.path.insert(0, "../examples/torch")
import relus
from torch import nn
torch.set_num_threads(1)
x = torch.rand(256, 1)
part = held = x, torch.sin(x)
network = relus.Network("", "", "", None, "", None, 64, 1e-3)
def train(epochs, path):
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(1, 8), nn.GELU(), nn.Linear(8, 1))
    relus.train(net, part, held, network, epochs, path)
    return net.state_dict()
relus.Progress.SECONDS = 0
whole = train(6, sys.argv[1] + "/whole.part")
train(3, sys.argv[1] + "/stopped.part")
good = all(torch.equal(a, b) for a, b in zip(whole.values(), train(6, sys.argv[1] + "/stopped.part").values()))
print("ok" if good else "FAIL", "relus.py: a training that was stopped continues to the same weights")
sys.exit(not good)
EOF
[ $? = 0 ] || bad=1

mkdir -p $out/alone && cp ../examples/torch/lgelu.py $out/alone/
said=$(PYTHONPATH=$out/alone LGELU_TORCH_LIBRARY=/nowhere $python -c 'import lgelu' 2>&1 | tail -n 1)
case $said in ImportError*'make -C examples torch'*) echo "ok without its library the module says how to build it" ;;
*) echo "FAIL without its library the module says how to build it: $said"; bad=1 ;; esac

# The example runs for 2 epochs.
if $python ../examples/torch/train.py --epochs 2 --out $out/example > $out/train.log 2> $out/err
then echo "ok the example trains, hardens and swaps"
else echo "FAIL the example trains, hardens and swaps: $(tail -n 1 $out/err)"; bad=1; fi
sed 's/^/# /' $out/train.log
field() { sed -n "s/^$1 .*$2 *\([0-9.e+-]*\).*/\1/p" $out/train.log; }
name="the hardened network is swapped with at most 2 flips, the cold one with more"
if echo "$(field hardened before) $(field hardened flips) $(field gelu flips)" |
    awk '{ exit !(NF == 3 && $1 > 85 && $2 <= 2 && $3 > $2) }'
then echo "ok $name"
else echo "FAIL $name: $(paste -sd';' $out/train.log)"; bad=1; fi
$CC -std=c99 -O1 tools/onnx_evaluate.c $ONNX_RUN ${IMPLEMENTATION:-tools/lgelu.c} -o $out/onnx_evaluate -lm || exit 1
printf 'relu\tfloat32\t2500,784\t2500,10\n' > $out/example/list
$out/onnx_evaluate $out/example/list $out/example 1e-5 || bad=1
$out/onnx_evaluate $out/list $out 1e-5 || bad=1
exit $bad
