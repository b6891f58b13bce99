# A customer's program made of Net::SMPP: perl client.pl HOST PORT SYSTEM_ID PASSWORD. It does what the program of node-smpp
# does, and says it in the same words.
use strict;
use warnings;
use Net::SMPP;
use JSON::PP;
use IO::Select;

my ($host, $port, $system_id, $password) = @ARGV;
$| = 1;
my $smpp;

sub say_event { print JSON::PP->new->canonical->latin1->encode({@_}), "\n" }

sub bind_again {
	my $resp;
	($smpp, $resp) = Net::SMPP->new_transceiver($host, port => $port, system_id => $system_id, password => $password,
		system_type => '', smpp_version => 0x34, interface_version => 0x34, addr_ton => 0, addr_npi => 0)
		or die "cannot bind: $!";
	say_event(event => 'bound', status => $resp->{status} + 0);
}

sub take {
	my $pdu = $smpp->read_pdu() or do { say_event(event => 'closed'); $smpp = undef; return };
	if ($pdu->{cmd} == Net::SMPP::CMD_deliver_sm) {
		$smpp->deliver_sm_resp(message_id => '', seq => $pdu->{seq});
		my $id = $pdu->{receipted_message_id} // '';
		$id =~ s/\0//g;
		my $state = defined $pdu->{message_state} ? unpack('C', $pdu->{message_state}) : undef;
		say_event(event => ($pdu->{esm_class} & 4) ? 'receipt' : 'mo', id => $id, state => $state, text => $pdu->{short_message});
	} elsif ($pdu->{cmd} == Net::SMPP::CMD_enquire_link) {
		$smpp->enquire_link_resp(seq => $pdu->{seq});
	} elsif ($pdu->{cmd} == Net::SMPP::CMD_submit_sm_resp) {
		say_event(event => 'answer', status => $pdu->{status} + 0, id => $pdu->{message_id} // '');
	} elsif ($pdu->{cmd} == Net::SMPP::CMD_unbind_resp) {
		close $smpp;
		$smpp = undef;
		say_event(event => 'closed');
	}
}

sub submit {
	$smpp->submit_sm(async => 1, source_addr_ton => 5, source_addr_npi => 0, source_addr => 'ACME', dest_addr_ton => 1, dest_addr_npi => 1,
		destination_addr => '25779123456', registered_delivery => 1, validity_period => '', schedule_delivery_time => '', @_);
}

bind_again();
my $stdin = '';
while (1) {
	my $select = IO::Select->new(\*STDIN);
	$select->add($smpp) if $smpp;
	for my $ready ($select->can_read()) {
		if ($smpp && $ready == $smpp) { take(); next }
		sysread(STDIN, $stdin, 1024, length $stdin) or exit 0;
		while ($stdin =~ s/^(\w+)\n//) {
			if ($1 eq 'send') {
				submit(short_message => "Amahoro \x00 \x1b\x65");
				submit(short_message => pack('n*', map { ord } split //, "Ca co\x{fb}te ") . "\xd8\x3d\xde\x00", data_coding => 8);
				submit(esm_class => 0x40, short_message => "\x05\x00\x03\xab\x03" . chr($_) . ('Mwa', 'ramu', 'tse')[$_ - 1]) for 1 .. 3;
			} elsif ($1 eq 'unbind') {
				$smpp->unbind(async => 1);
			} elsif ($1 eq 'bind') {
				bind_again();
			}
		}
	}
}
