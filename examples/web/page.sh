# SPDX-License-Identifier: MIT-0
# page.sh BUILD ADDRESS: prints the page with its parts in place: a line @@FILE becomes the file, @@hash FILE@@ what the page's content
# security policy calls the script or style that is this file, and @@repository@@ the address. Called by the Makefile in the folder above.
parts=$1
repository=$2
find_part() { if [ -f "web/$1" ]; then echo "web/$1"; else echo "$parts/$1"; fi; }

# The text between the tags: the file, and the end of the line before it.
hash_of()
{
    octal=$({ echo; cat "$(find_part "$1")"; } | sha256sum | awk '{
        for (i = 1; i < 64; i += 2)
            printf "\\%03o", (index("0123456789abcdef", substr($1, i, 1)) - 1) * 16 + index("0123456789abcdef", substr($1, i + 1, 1)) - 1
    }')
    printf "$octal" | base64
}

while IFS= read -r line; do
    case $line in
    *@@hash*)
        for name in page.js convert.js page.css; do
            hash=$(hash_of $name)
            line=$(printf '%s\n' "$line" | sed "s|@@hash $name@@|'sha256-$hash'|")
        done
        printf '%s\n' "$line" ;;
    *@@repository@@*) printf '%s%s%s\n' "${line%%@@repository@@*}" "$repository" "${line#*@@repository@@}" ;;
    @@*) cat "$(find_part "${line#@@}")" ;;
    *) printf '%s\n' "$line" ;;
    esac
done < web/page.html
