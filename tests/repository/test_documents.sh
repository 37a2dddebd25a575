# SPDX-License-Identifier: MIT-0
# test_documents.sh: README's rows are those of examples/RESULTS.md and bench/README.md; links lead somewhere; figures are shown;
# plain English: no document, comment or message uses an expression of tools/dialect.txt. Each check is tried on a planted fault.
dir=build/documents
rm -rf $dir
mkdir -p $dir
. tools/verdict.sh

# ---- tables: README's rows, without headers, and where each comes from ----
# rows DOCUMENT HEADING: the rows of the tables below this heading
rows() { awk -v heading="$2" '/^#/ { on = $0 == heading; next } on && /^\|/ { if (seen++ > 1) print } !/^\|/ { seen = 0 }' "$1"; }
# missing DOCUMENT HEADING SOURCE: those of them that the source does not have. It has a row if one of its own begins with the same cell and
# contains the others in this order, so that README may leave columns out.
missing()
{
    rows "$1" "$2" > $dir/rows
    awk -F ' *[|] *' '
    function has(row, place, i) {
        for (i = 3; i < NF; i++) {
            place = index(row, "| " $i " |")
            if (!place) return 0
            row = substr(row, place + length("| " $i " "))
        }
        return 1
    }
    NR == FNR { if (/^\|/) { n++; name[n] = $2; row[n] = $0 }; next }
    { found = 0; for (k = 1; k <= n && !found; k++) found = name[k] == $2 && has(row[k]) }
    !found' "$3" $dir/rows
}
# same HEADING SOURCE MOST
same()
{
    n=$(rows ../README.md "$1" | wc -l)
    verdict $([ "$n" -ge 1 ] && [ "$n" -le $3 ]; echo $?) "README.md, $1: one to $3 rows" "$n"
    other=$(missing ../README.md "$1" ../$2)
    verdict $([ -z "$other" ]; echo $?) "README.md, $1: its rows are those of $2" "$other"
}
same '## Two commands' examples/RESULTS.md 7
same '## What the experiments say' examples/RESULTS.md 9
same '## Speed' bench/README.md 8
same '## Convert a finished network' examples/RESULTS.md 9
columns() { awk -v heading="$2" '/^#/ { on = $0 == heading } on && /^\|/ { n = gsub(/\|/, "") - 1; if (n > most) most = n } END { print most + 0 }' "$1"; }
verdict $([ "$(columns ../README.md '## Convert a finished network')" -le 5 ]; echo $?) "README.md, ## Convert a finished network: at most five columns" ""
sed 's/0.40 ± 0.26/0.41 ± 0.26/' ../README.md > $dir/changed.md
verdict $([ "$(missing $dir/changed.md '## Two commands' ../examples/RESULTS.md | wc -l)" = 1 ]; echo $?) "a changed number is found" "it is not"

# every row of the summary is in README, so that neither can say something else
other=$(missing ../examples/RESULTS.md '## Summary' ../README.md)
verdict $([ -z "$other" ]; echo $?) "README.md has every row of the summary of examples/RESULTS.md" "$other"
sed '/^| patterns settle/d' ../README.md > $dir/changed.md
verdict $([ "$(missing ../examples/RESULTS.md '## Summary' $dir/changed.md | wc -l)" = 1 ]; echo $?) "a missing row is found" "it is not"

# the intervals of the summary stand in a section below, too
other=$(rows ../examples/RESULTS.md '## Summary' | grep -o '([-+0-9. to]*)' | sort -u | while read -r interval; do
    [ "$(grep -c -F -e "$interval" ../examples/RESULTS.md)" -ge 2 ] || echo "$interval"; done)
verdict $([ -z "$other" ]; echo $?) "examples/RESULTS.md: the summary has the sections' intervals" "$other"

# the marks of conversions follow from the figures beside them, Holm's correction included
if command -v python3 > /dev/null; then
    other=$(python3 tools/marks_check.py ../examples/RESULTS.md)
    verdict $? "examples/RESULTS.md: the marks of conversions follow from their figures" "$other"
    sed 's/+0.0196 ± 0.0011 ✗/+0.0196 ± 0.0011 ✓/' ../examples/RESULTS.md > $dir/changed.md
    verdict $(! python3 tools/marks_check.py $dir/changed.md > $dir/marks; echo $?) "a wrong mark is found" "it is not"
    sed 's/+0.0196 ± 0.0011 ✗/+0.0196 ± 0.0911 ✗/' ../examples/RESULTS.md > $dir/changed.md
    verdict $(! python3 tools/marks_check.py $dir/changed.md > $dir/marks; echo $?) "an interval that decides nothing is found" "it is not"
    sed 's/+0.0020 ± 0.0009 |/+0.0020 ± 0.0009 ✗ |/' ../examples/RESULTS.md > $dir/changed.md
    verdict $(! python3 tools/marks_check.py $dir/changed.md > $dir/marks; echo $?) "a mark of a cross-entropy of images is found" "it is not"
else echo "skip the marks of conversions: no python3 here"; fi

# a cell holds a number and a verdict, or a command, but no paragraph
long() { awk -v most=$2 '/^\|/ { n = split($0, cell, /\|/); for (i = 2; i < n; i++) { gsub(/[\200-\277]/, "", cell[i]); if (length(cell[i]) > most) print FILENAME ": " FNR } }' "$1"; }
for document in README.md examples/RESULTS.md bench/README.md bench/LOG.md; do
    other=$(LC_ALL=C long ../$document 260)
    verdict $([ -z "$other" ]; echo $?) "$document: no table cell is a paragraph" "$other"
done
printf '| a | %0300d |\n' 0 > $dir/long.md
verdict $([ "$(LC_ALL=C long $dir/long.md 260)" = "$dir/long.md: 1" ]; echo $?) "a long cell is found" "it is not"

# ---- the tables of promises: they name every test, and only tests that are there ----
# promised DOCUMENT: the tests that its tables name, a pattern such as test_onnx* as the tests that it stands for
promised()
{
    awk '/^## / { off = !/^## What is promised/ } !off && /^\|/' "$1" | grep -o '`\(test\|fuzz\)_[a-z0-9_*]*`' | tr -d '`' | sort -u |
        while read -r name; do ls */$name.c */$name.sh 2> /dev/null | grep . || echo "$name?"; done | sed 's|.*/||; s/\.[a-z]*$//' | sort -u
}
ls */test_*.c */test_*.sh fuzz/*.c | sed 's|.*/||; s/\.[a-z]*$//' | sort > $dir/tests
promised README.md > $dir/promised
other=$(diff $dir/tests $dir/promised | grep '^[<>]')
verdict $([ -z "$other" ]; echo $?) "tests/README.md: the tables of promises name every test and no other" "$(echo $other | head -c 200)"
other=$(promised PROMISES.md | comm -13 $dir/tests -)
verdict $([ -z "$other" ]; echo $?) "tests/PROMISES.md: it names tests that are there" "$(echo $other | head -c 200)"
sed 's/`test_gemm`/`test_gem`/' README.md > $dir/changed.md
verdict $([ "$(promised $dir/changed.md | diff $dir/tests - | grep -c '^[<>]')" = 2 ]; echo $?) "a test that is not in the table, and a name without a test, are found" "they are not"

# ---- names since 1.0: each is in the header ----
# unknown DOCUMENT: the names of the second column of tables, and of the list of new ones, that lgelu.h does not have as a whole word
unknown()
{
    awk '/^New in 1.0/ { all = 1 } /^\| / { n = split($0, cell, "|"); print all ? $0 : cell[n - 1] }' "$1" | grep -o -w -E '(lgelu|LGELU)_[A-Za-z0-9_]+' | sort -u | while read -r name; do
        grep -q -w -e "$name" ../lgelu.h || made "$name" || echo "$name"; done
}
# made NAME: whether a list of the header makes this name
made()
{
    case $1 in
    LGELU_OP_*) grep -q "^    X(${1#LGELU_OP_}, " ../lgelu.h ;;
    LGELU_GATE_*) grep -q "^    X(${1#LGELU_GATE_}, " ../lgelu.h ;;
    *) return 1 ;;
    esac
}
other=$(unknown names-1.0.md)
verdict $([ -z "$other" ]; echo $?) "tests/names-1.0.md: the names since 1.0 are in lgelu.h" "$other"
sed 's/`lgelu_trait`/`lgelu_traits`/; s/`LGELU_OP_MUL`/`LGELU_OP_MULS`/; s/`LGELU_INIT_HE`, `LGELU_INIT_GLOROT`,/`LGELU_INIT_HEE`,/' names-1.0.md > $dir/changed.md
verdict $([ "$(unknown $dir/changed.md | wc -l)" = 3 ]; echo $?) "names that the header does not have are found" "$(unknown $dir/changed.md)"

# ---- links of all documents: the file is there, and the heading in it ----
documents=$(cd .. && find . .github -name '*.md' ! -path '*/build/*' ! -path './.git/*' | sed 's|^\./||' | sort -u)
# headings DOCUMENT: as anchors
headings()
{
    awk '/^```/ { code = !code } !code && /^#/ { sub(/^#+ */, ""); print tolower($0) }' "$1" |
        sed -e 's/`//g' -e 's/\[\([^]]*\)\]([^)]*)/\1/g' -e 's/[^[:alnum:] _-]//g' -e 's/ /-/g'
}
# broken DOCUMENT: its links that lead nowhere
broken()
{
    awk '/^```/ { code = !code } !code' "$1" | grep -o '](<*[^)]*)' | sed 's/^](//; s/)$//' | grep -v '^https*:' | while read -r link; do
        file=${link%%#*} anchor=
        case $link in *'#'*) anchor=${link#*#} ;; esac
        target=$(dirname "$1")/$file
        [ "$file" ] || target=$1
        [ -e "$target" ] || { echo "$link"; continue; }
        [ -z "$anchor" ] && continue
        [ -d "$target" ] && target=$target/README.md
        headings "$target" 2> /dev/null | grep -q -x -F -e "$anchor" || echo "$link"
    done
}
for document in $documents; do
    other=$(broken ../$document)
    verdict $([ -z "$other" ]; echo $?) "$document: each link leads somewhere" "$(echo $other)"
done
printf 'one two three\n' > $dir/words.md
printf '# A head, with `code`\n[a](words.md) [b](nowhere.md) [c](#a-head-with-code) [d](#another) [e](https://example.org/nowhere)\n' > $dir/links.md
verdict $([ "$(echo $(broken $dir/links.md))" = 'nowhere.md #another' ]; echo $?) "a broken link is found, and a missing heading" "$(broken $dir/links.md)"
other=$(for figure in ../examples/figures/*; do grep -q -F "figures/$(basename $figure)" ../examples/RESULTS.md ../README.md || basename $figure; done)
verdict $([ -z "$other" ]; echo $?) "README.md or examples/RESULTS.md shows every figure" "$other"
if command -v python3 > /dev/null; then
    other=$(python3 tools/figures_check.py ../examples/figures/*.svg)
    verdict $? "the figures can be read: no text leaves the sheet or covers another one, every line is named" "$(echo "$other" | head -3)"
    cat > $dir/bad.svg << 'EOF'
<svg xmlns="http://www.w3.org/2000/svg" width="200" height="1300"><text x="150" y="20" font-size="12" fill="#111111">over the edge</text>
<text x="20" y="40" font-size="12" fill="#222222">one</text><text x="30" y="42" font-size="12" fill="#222222">two</text>
<polyline stroke="#222222" points="0,0 1,1"/><polyline stroke="#333333" points="0,0 1,1"/></svg>
EOF
    other=$(python3 tools/figures_check.py $dir/bad.svg | wc -l)
    verdict $([ "$other" = 4 ]; echo $?) "figures: a sheet too high, text over the edge, text on text and a line without a name are found" "$other of 4"
else echo "skip the figures can be read: no python3 here"; fi

# ---- plain English ----
grep -v '^#' tools/dialect.txt | cut -f 1 | grep . > $dir/dialect
verdict $([ "$(wc -l < $dir/dialect)" -ge 20 ]; echo $?) "the list of expressions is there" "$(wc -l < $dir/dialect)"
# dialect FILE: the expressions in it, also those that run over the end of a line
dialect()
{
    sed -e 's/^[[:blank:]]*//' -e 's/^\(#\|\/\/\|\*\) *//' -e 's/[[:blank:]]*$//' "$1" | tr '\n' ' ' | grep -a -i -w -o -F -f $dir/dialect | tr 'A-Z' 'a-z' | sort |
        uniq -c | awk '{ n = $1; $1 = ""; printf "%s\"%s\"%s", (NR > 1 ? ", " : ""), substr($0, 2), (n > 1 ? " " n " times" : "") }'
}
# suspects FILE...: those for which dialect may print something, by one pass over all of them: each file becomes a line
suspects()
{
    awk 'FNR == 1 { printf "%s%s\t", (NR > 1 ? "\n" : ""), FILENAME }
        { sub(/^[ \t]*/, ""); sub(/^(#|\/\/|\*) */, ""); sub(/[ \t]*$/, ""); printf "%s ", $0 } END { print "" }' "$@" |
        LC_ALL=C grep -a -i -w -F -f $dir/dialect | cut -f 1
}
(cd .. && find . -type f \( -name '*.c' -o -name '*.h' -o -name '*.cc' -o -name '*.sh' -o -name '*.md' -o -name '*.py' -o -name '*.js' -o -name '*.html' \
    -o -name '*.css' -o -name '*.txt' -o -name '*.cmake' -o -name Makefile -o -path './.ci/run' \) ! -path '*/build/*' ! -path './.git/*' \
    ! -path './tests/corpus/*' ! -path './tests/tools/dialect*' ! -name text_cases.txt) | sed 's|^\./||' | sort > $dir/files
verdict $([ "$(wc -l < $dir/files)" -gt 150 ]; echo $?) "the files are found" "$(wc -l < $dir/files)"
grep -v '^#' tools/dialect_pending.txt | grep . > $dir/pending
pending=0
clean=$(wc -l < $dir/files)
for file in $(suspects $(sed 's|^|../|' $dir/files)); do
    file=${file#../}
    other=$(dialect ../$file)
    [ "$other" ] || continue
    clean=$((clean - 1))
    if grep -q -x -F -e "$file" $dir/pending; then pending=$((pending + 1))
    else verdict 1 "plain English in $file" "$other"; fi
done
verdict $([ $clean -gt 50 ]; echo $?) "plain English in $clean files" "$clean"
[ $pending = 0 ] || echo "skip plain English in $pending files: in tools/dialect_pending.txt"
other=$(while read -r file; do [ -e ../$file ] || echo "$file"; done < $dir/pending)
verdict $([ -z "$other" ]; echo $?) "the files that are pending exist" "$other"
first=$(head -n 1 $dir/dialect)
printf '/* a value; it %s\n   %s */\n' ${first% *} "$(echo ${first#* } | tr a-z A-Z)" > $dir/dialect.c
verdict $([ "$(suspects $dir/words.md $dir/dialect.c)" = $dir/dialect.c ] && [ "$(dialect $dir/dialect.c)" = "\"$first\"" ]; echo $?) \
    "an expression over the end of a line is found" "$(dialect $dir/dialect.c)"
exit $bad
