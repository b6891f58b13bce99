// What a developer writes with the types that openapi-typescript makes of the
// OpenAPI document. tsc checks it, node runs it against the gateway.
import createClient from 'openapi-fetch';
import type { paths, components } from './api';

declare const process: { env: Record<string, string> };

const client = createClient<paths>({
  baseUrl: process.env.BASE_URL,
  headers: { Authorization: `Bearer ${process.env.TOKEN}` },
});

const sent = await client.POST('/sms', {
  params: { header: { 'Idempotency-Key': 'typescript', Prefer: 'include=message_id' } },
  body: { phone_number: '79123400', sender: 'ACME', message: 'Muraho' },
});
if (sent.error) {
  throw new Error(sent.error.message);
}
const id: string = sent.data.id;

const message = await client.GET('/sms/{id}', { params: { path: { id: String(sent.data.message_id) } } });
if (message.data?.id !== id) {
  throw new Error(`another message: ${JSON.stringify(message)}`);
}
const status: 'pending' | 'sent' | 'failed' = message.data.status;

const refused = await client.POST('/sms', { body: { phone_number: '1', sender: 'ACME', message: 'x' } });
type Code = NonNullable<components['headers']['ErrorCode']>;
const code: Code = refused.response.headers.get('X-Error-Code') as Code;
if (code !== 'phone_number_invalid') {
  throw new Error(`refused as ${code}`);
}

// @ts-expect-error: the message is missing
void client.POST('/sms', { body: { phone_number: '79123400', sender: 'ACME' } }).catch(() => {});
// @ts-expect-error: there is no such code
const wrong: Code = 'phone_number_wrong';
void wrong;

console.log(id, status);
