// A customer's program made of the npm package smpp (node-smpp): node client.js HOST PORT SYSTEM_ID PASSWORD. It binds as a
// transceiver and takes words on standard input: "send" sends a text, a text in UCS-2 and a long one in three parts, "unbind"
// and "bind" do so. It says what happens on standard output, one JSON object a line.
'use strict';
const smpp = require('smpp');
const readline = require('readline');

const [host, port, systemID, password] = process.argv.slice(2);
const say = (what) => process.stdout.write(JSON.stringify(what) + '\n');
let session;

const text = (pdu) => (pdu.short_message.message || (pdu.message_payload && pdu.message_payload.message) || '').toString();

function bind() {
  session = smpp.connect({ url: `smpp://${host}:${port}` }, () => {
    session.bind_transceiver({ system_id: systemID, password }, (pdu) => say({ event: 'bound', status: pdu.command_status }));
  });
  session.on('error', (error) => say({ event: 'error', text: String(error) }));
  session.on('close', () => say({ event: 'closed' }));
  session.on('enquire_link', (pdu) => session.send(pdu.response()));
  session.on('deliver_sm', (pdu) => {
    session.send(pdu.response());
    const id = pdu.receipted_message_id;
    say({ event: pdu.esm_class & 4 ? 'receipt' : 'mo', id: id ? id.toString() : '', state: pdu.message_state, text: text(pdu) });
  });
}

function submit(fields) {
  session.submit_sm({
    source_addr: 'ACME', source_addr_ton: 5, destination_addr: '25779123456', dest_addr_ton: 1, dest_addr_npi: 1, registered_delivery: 1, ...fields,
  }, (pdu) => say({ event: 'answer', status: pdu.command_status, id: pdu.message_id }));
}

readline.createInterface({ input: process.stdin }).on('line', (word) => {
  if (word === 'send') {
    submit({ short_message: 'Amahoro @ €' });
    submit({ short_message: 'Ça coûte 😀', data_coding: 8 });
    ['Mwa', 'ramu', 'tse'].forEach((part, i) => submit({ esm_class: 0x40, short_message: { udh: Buffer.from([5, 0, 3, 0xab, 3, i + 1]), message: part } }));
  } else if (word === 'unbind') {
    session.unbind(() => session.close());
  } else if (word === 'bind') {
    bind();
  }
}).on('close', () => process.exit(0));
bind();
