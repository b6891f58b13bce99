# "start NUMBER" sends a code and prints the verification's id. If you make the key with the
# form that you show, a double click sends one code.
# "check ID CODE" prints approved, or why not.
call() { # path, body, answer's field
  curl -sS --connect-timeout 5 --max-time 15 "$BASE_URL/verifications$1" \
    -H "Authorization: Bearer $TOKEN" \
    -H "Content-Type: application/json" \
    -H "Idempotency-Key: $(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')" \
    -d "$2" | jq -r "$3 // .message"
}
case "$1" in
start) call "" "{\"phone_number\": \"$2\", \"sender\": \"INTUMWATEST\"}" .id ;;
check) call "/$2/check" "{\"code\": \"$3\"}" .status ;;
esac
