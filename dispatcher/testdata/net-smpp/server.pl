# A message centre made of the Perl module Net::SMPP (Debian package
# libnet-smpp-perl). It says on standard output, one line each, where it
# listens and what comes, serves one session, and ends with it.
use strict;
use warnings;
use IO::Handle;
use Net::SMPP;

STDOUT->autoflush(1);
my $listener = Net::SMPP->new_listen('127.0.0.1', port => 0, smpp_version => 0x34, interface_version => 0x34)
    or die "listening: $!";
print "listening ", $listener->sockport, "\n";
my $session = $listener->accept or die "accepting: $!";
my $last = 1000;
while (my $pdu = $session->read_pdu) {
    my $seq = $pdu->{seq};
    if ($pdu->{cmd} == Net::SMPP::CMD_bind_transceiver()) {
        print "bind $pdu->{system_id}\n";
        $session->bind_transceiver_resp(seq => $seq, status => 0, system_id => 'net-smpp');
    } elsif ($pdu->{cmd} == Net::SMPP::CMD_enquire_link()) {
        print "enquire_link\n";
        $session->enquire_link_resp(seq => $seq, status => 0);
    } elsif ($pdu->{cmd} == Net::SMPP::CMD_submit_sm()) {
        my $id = ++$last;
        print "submit $pdu->{destination_addr} $pdu->{esm_class} $pdu->{data_coding} ", unpack('H*', $pdu->{short_message}), "\n";
        $session->submit_sm_resp(seq => $seq, status => 0, message_id => $id);
        $session->deliver_sm(source_addr => $pdu->{destination_addr}, source_addr_ton => 1, source_addr_npi => 1,
            destination_addr => $pdu->{source_addr}, esm_class => 4, async => 1,
            short_message => "id:$id sub:001 dlvrd:001 submit date:2611201230 done date:2611201231 stat:DELIVRD err:000 text:");
    } elsif ($pdu->{cmd} == Net::SMPP::CMD_deliver_sm_resp()) {
        print "receipt_answered $pdu->{status}\n";
    } elsif ($pdu->{cmd} == Net::SMPP::CMD_unbind()) {
        print "unbind\n";
        $session->unbind_resp(seq => $seq, status => 0);
        last;
    } else {
        print "other $pdu->{cmd}\n";
    }
}
