// The answer's status and body. See above for when to try again.
async function call(path, body, headers = {}) {
  const response = await fetch(`${process.env.BASE_URL}/verifications${path}`, {
    method: 'POST',
    headers: {
      'Authorization': `Bearer ${process.env.TOKEN}`,
      'Content-Type': 'application/json',
      ...headers,
    },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(15_000),
  });
  return [response.status, await response.json()];
}

// start sends a code and returns the verification's id: keep it in the person's session.
// If you make the key with the form that you show, a double click sends one code.
async function start(number) {
  const [status, answer] = await call('', { phone_number: number, sender: 'INTUMWATEST' }, { 'Idempotency-Key': crypto.randomUUID() });
  if (status !== 200) {
    throw new Error(`${status}: ${answer.message}`);
  }
  return answer.id;
}

// check returns approved, or why the code is not accepted.
async function check(id, code) {
  const [status, answer] = await call(`/${id}/check`, { code });
  return status === 200 ? answer.status : answer.message;
}

const [what, ...values] = process.argv.slice(2);
console.log(await (what === 'start' ? start : check)(...values));
