# Broken connections, timeouts, 408, 429 and 5xx are tried again, after Retry-After
# where the answer has one. If it still fails, run it again: with the same
# Idempotency-Key there is one SMS.
answer=$(curl -sS --connect-timeout 5 --max-time 15 --retry 5 --retry-all-errors -w '\n%{http_code}' "$BASE_URL/sms" \
  -H "Authorization: Bearer $TOKEN" \
  -H "Content-Type: application/json" \
  -H "Idempotency-Key: order-1001" \
  -d '{"phone_number": "+25701000001", "sender": "INTUMWATEST", "message": "Urakoze!"}')
echo "$answer"
[ "${answer##*[!0-9]}" = 200 ] # the status is behind the body
