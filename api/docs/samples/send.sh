curl -sS "$BASE_URL/sms" \
  -H "Authorization: Bearer $TOKEN" \
  -H "Content-Type: application/json" \
  -H "Idempotency-Key: order-1001" \
  -d '{"phone_number": "+25761234500", "sender": "INTUMWATEST", "message": "Urakoze!"}'
