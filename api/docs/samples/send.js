const response = await fetch(`${process.env.BASE_URL}/sms`, {
  method: 'POST',
  headers: {
    'Authorization': `Bearer ${process.env.TOKEN}`,
    'Content-Type': 'application/json',
    'Idempotency-Key': 'order-1003',
  },
  body: JSON.stringify({
    phone_number: '+25761234500',
    sender: 'INTUMWATEST',
    message: 'Urakoze!',
  }),
});
const answer = await response.json();

if (!response.ok) {
  throw new Error(`${response.status}: ${answer.message}`);
}
console.log(answer.id);
