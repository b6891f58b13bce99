// The key names what is sent, such as an order: with it a message that is tried
// again is sent and paid once.
async function send(key, message) {
  for (let attempt = 0; ; attempt++) {
    let response;
    let answer;
    try {
      response = await fetch(`${process.env.BASE_URL}/sms`, {
        method: 'POST',
        headers: {
          'Authorization': `Bearer ${process.env.TOKEN}`,
          'Content-Type': 'application/json',
          'Idempotency-Key': key,
        },
        body: JSON.stringify(message),
        signal: AbortSignal.timeout(15_000),
      });
      answer = await response.json();
    } catch (error) {
      answer = { message: `no answer: ${error.message}` }; // refused, broken off or too late
    }
    const status = response?.status ?? 0;

    if (status === 200 && answer.id) {
      return answer;
    }
    const again = status >= 500 || [0, 200, 408, 409, 429].includes(status);
    if (!again || attempt === 4) {
      throw new Error(`${status}: ${answer.message}`);
    }
    // 1, 2, 4, 8 seconds, without Retry-After
    const wait = Number(response?.headers.get('Retry-After')) || 2 ** attempt;
    await new Promise((resolve) => setTimeout(resolve, wait * 1000));
  }
}

const answer = await send('order-1003', {
  phone_number: '+25701000001',
  sender: 'INTUMWATEST',
  message: 'Urakoze!',
});
console.log(answer.id);
