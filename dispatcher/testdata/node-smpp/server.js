// A message centre made of the npm package smpp (node-smpp). It says on
// standard output, one JSON object a line, where it listens and what comes, and
// takes the word "unbind" on standard input. Ids are hexadecimal in the
// response and decimal in the receipt.
'use strict';
const smpp = require('smpp');
const readline = require('readline');

const say = (what) => process.stdout.write(JSON.stringify(what) + '\n');
const sessions = new Set();
let last = 0xa0000000;

const server = smpp.createServer((session) => {
  session.on('error', (error) => say({ event: 'error', text: String(error) }));
  session.on('close', () => { sessions.delete(session); say({ event: 'close' }); });
  session.on('bind_transceiver', (pdu) => {
    say({ event: 'bind', systemID: pdu.system_id, version: pdu.interface_version });
    session.send(pdu.response({ system_id: 'node-smpp' }));
    sessions.add(session);
  });
  session.on('enquire_link', (pdu) => { say({ event: 'enquire_link' }); session.send(pdu.response()); });
  session.on('unbind', (pdu) => { say({ event: 'unbind' }); session.send(pdu.response(), undefined, () => session.close()); });
  session.on('unknown', (pdu) => say({ event: 'unknown', command: pdu.command }));
  session.on('submit_sm', (pdu) => {
    const id = ++last;
    const udh = pdu.short_message.udh ? Buffer.concat(pdu.short_message.udh).toString('hex') : '';
    say({
      event: 'submit', source: pdu.source_addr, sourceTON: pdu.source_addr_ton, dest: pdu.destination_addr, destTON: pdu.dest_addr_ton,
      esmClass: pdu.esm_class, dataCoding: pdu.data_coding, registered: pdu.registered_delivery, validity: String(pdu.validity_period),
      udh, text: pdu.short_message.message, payload: pdu.message_payload ? pdu.message_payload.message : '',
      sar: pdu.sar_msg_ref_num === undefined ? '' : pdu.sar_segment_seqnum + '/' + pdu.sar_total_segments, reference: pdu.user_message_reference,
    });
    session.send(pdu.response({ message_id: id.toString(16).toUpperCase() }));
    const failed = pdu.destination_addr.endsWith('01');
    const stat = failed ? 'UNDELIV' : 'DELIVRD';
    session.deliver_sm({
      source_addr: pdu.destination_addr, source_addr_ton: 1, source_addr_npi: 1, destination_addr: pdu.source_addr, dest_addr_ton: 5,
      esm_class: smpp.ESM_CLASS.MC_DELIVERY_RECEIPT,
      short_message: 'id:' + id + ' sub:001 dlvrd:001 submit date:2611201230 done date:2611201231 stat:' + stat + ' err:000 text:',
      receipted_message_id: String(id), message_state: failed ? 5 : 2,
    }, (response) => say({ event: 'receipt_answered', status: response.command_status }));
  });
});

server.listen(0, '127.0.0.1', function listening() { say({ event: 'listening', port: server.address().port }); });

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  if (line === 'unbind') {
    for (const session of sessions) session.unbind(() => { say({ event: 'unbound' }); session.close(); });
  }
  if (line === 'text') {
    for (const session of sessions) {
      session.deliver_sm({ source_addr: '25761000001', source_addr_ton: 1, source_addr_npi: 1, destination_addr: 'DEMO', data_coding: 0, short_message: 'Amakuru é @ €' },
        (response) => say({ event: 'text_answered', status: response.command_status }));
    }
  }
}).on('close', () => process.exit(0));
