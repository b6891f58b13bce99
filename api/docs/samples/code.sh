# "start NUMBER" sends a code and prints the verification's id.
# "check ID CODE" prints approved, or why not.
call() { # path, body
  curl -sS --connect-timeout 5 --max-time 15 "$BASE_URL/verifications$1" \
    -H "Authorization: Bearer $TOKEN" \
    -H "Content-Type: application/json" \
    -d "$2" | jq -r "$3 // .message"
}
case "$1" in
start) call "" "{\"phone_number\": \"$2\", \"sender\": \"INTUMWATEST\"}" .id ;;
check) call "/$2/check" "{\"code\": \"$3\"}" .status ;;
esac
