import pytest

from pilothouse.cel.declarations import Library
from pilothouse.cel.environment import Environment
from pilothouse.cel.kubernetes import CURRENT, libraries
from pilothouse.cel.macros import BINDINGS
from pilothouse.cel.values import EvaluationError

ENVIRONMENT = Environment({}, (*libraries(CURRENT), Library(macros=BINDINGS)))


@pytest.mark.parametrize(
    "text",
    [
        "'tacocat'.charAt(3) == 'o' && 'ab'.charAt(2) == '' && 'hello mellow'.indexOf('ello', 2) == 7",
        "'hello mellow'.lastIndexOf('ello') == 7 && 'hello mellow'.lastIndexOf('ello', 6) == 1",
        "'a' .indexOf('') == 0 && 'abc'.lastIndexOf('') == 3 && 'abc'.lastIndexOf('z', 9) == -1",
        "'TacoCÆt'.lowerAscii() == 'tacocÆt' && 'tacoCÆt'.upperAscii() == 'TACOCÆT'",
        "'hello hello'.replace('he', 'we', 1) == 'wello hello' && 'ab'.replace('', '_') == '_a_b_'",
        "'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'a,b'.split(',', 0) == [] && 'abc'.split('', 2) == ['a', 'bc']",
        "'tacocat'.substring(0, 4) == 'taco' && '  x\\t'.trim() == 'x' && ['x', 'y'].join() == 'xy'",
        "strings.quote('a\\n\"b\\\\') == '\"a\\\\n\\\\\"b\\\\\\\\\"'",
        "'%s|%d|%.2f|%x|%X|%o|%b|%%|%e'.format(['a', 5, 1234.5, 255, 'hi', 8, true, 1052.0])"
        " == 'a|5|1,234.50|ff|6869|10|1|%|1.052000×10⁰³'",
        "'%e|%.2e|%.2e|%e|%f'.format([0.0 / 0.0, 1.0 / 0.0, -1.0 / 0.0, -0.0, -0.0])"
        " == '   NaN| ∞|-∞|0.000000×10⁰⁰|0.000000'",
        "'%s'.format([[1, 'a', 1.5, null, {'k': b'x'}, duration('1m')]])"
        ' == \'[1, "a", 1.500000, null, {"k":b"x"}, duration("60s")]\'',
        "'abc 123'.find('[0-9]+') == '123' && 'abc'.find('x') == '' && '123 abc 456'.findAll('[0-9]+', 1) == ['123']",
        "'aab'.findAll('a*') == ['aa', ''] || 'aab'.findAll('a*') == ['aa']",
        "[1, 2, 2].isSorted() && [1, 2].sum() == 3 && [1.5].sum() == 1.5 && ['b', 'a'].min() == 'a'",
        "[duration('1h'), duration('1m')].sum() == duration('61m')",
        "[3, 1].max() == 3 && [1, 2, 1].lastIndexOf(1) == 2",
        "[[[1]], [[2]]].flatten() == [[1], [2]] && dyn([[[1]]]).flatten(2) == [1]",
        "[[1], [2, 3]].flatten() == [1, 2, 3] && [1, 2, 3].slice(1, 2) == [2] && [2, 1, 2].distinct() == [2, 1]",
        "sets.contains([1, 2], [2]) && sets.intersects([1], [1, 2]) && sets.equivalent([1, 1, 2], [2, 1])",
        "[1, 2].includes(2) && 'a'.includes('a') && !'a'.includes('b')",
        "url('https://user:pw@example.com:8080/a%20b?x=1&x=2&y=#f').getHost() == 'example.com:8080'",
        "url('https://example.com:8080/').getPort() == '8080' && url('https://[::1]:1/').getHostname() == '::1'",
        "url('https://h/a%20b').getEscapedPath() == '/a%20b'",
        "url('https://h/?x=1&x=2').getQuery() == {'x': ['1', '2']}",
        "isURL('/absolute') && !isURL('relative') && !isURL('https://a:b:c/') && !isURL('../x') && !isURL('')",
        "quantity('1.5Gi').compareTo(quantity('1536Mi')) == 0 && quantity('50k').add(20) == quantity('50020')",
        "quantity('1').isInteger() && !quantity('1500m').isInteger() && quantity('2k').asInteger() == 2000",
        "quantity('50k').sub(quantity('20')).isLessThan(quantity('100k')) && sign(quantity('-1')) == -1",
        "quantity('1500m').asApproximateFloat() == 1.5 && !isQuantity('10x')",
        "ip('192.168.0.1').family() == 4 && ip('::1').isLoopback() && ip('0.0.0.0').isUnspecified()",
        "ip('224.0.0.1').isLinkLocalMulticast()",
        "ip('fe80::1').isLinkLocalUnicast() && ip('8.8.8.8').isGlobalUnicast()",
        "!isIP('192.168.0.01') && !isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0') && !ip.isCanonical('::0001')",
        "string(ip('2001:DB8::1')) == '2001:db8::1' && ip('127.0.0.1') == ip('127.0.0.1')",
        "cidr('192.168.1.7/24').masked() == cidr('192.168.1.0/24') && cidr('10.0.0.0/8').containsCIDR('10.0.0.0/9')",
        "cidr('10.0.0.0/8').containsIP(ip('10.9.9.9'))",
        "!cidr('10.0.0.0/8').containsIP('::1') && !isCIDR('10.0.0.0/33')",
        "string(cidr('10.0.0.0/8')) == '10.0.0.0/8' && cidr('10.0.0.1/8').ip() == ip('10.0.0.1')",
        "format.dns1123Label().validate('ok') == optional.none() && format.uuid().validate('x').value().size() == 1",
        "format.named('dns1123Subdomain').value() == format.dns1123Subdomain() && !format.named('zzz').hasValue()",
        "format.date().validate('2021-02-30').hasValue()",
        "!format.datetime().validate('2021-01-01T00:00:00Z').hasValue()",
        "format.byte().validate('aGk=') == optional.none()",
        "format.dns1123LabelPrefix().validate('ab-') == optional.none()",
        "semver('1.2.3').isGreaterThan(semver('1.2.3-rc.1')) && semver('1.0.0-a.2').isLessThan(semver('1.0.0-a.10'))",
        "semver('v1.2', true).compareTo(semver('1.2.0')) == 0 && !isSemver('01.2.3') && isSemver('1.2.3+b')",
        "semver('1.2.3').major() + semver('1.2.3').minor() + semver('1.2.3').patch() == 6",
        "[quantity('1')] == [dyn('a')] && dyn('a') != dyn(quantity('1')) && !(dyn(1) in [dyn(quantity('1'))])",
        "string(ip('1:2:3:4:5:6:1.2.3.4')) == '1:2:3:4:5:6:102:304' && string(ip('1::')) == '1::' && isIP('::1.2.3.4')",
        "cel.bind(x, 2, x * x) == 4 && cel.bind(x, 1 / 0, true)",
    ],
)
def test_truths(text: str) -> None:
    assert ENVIRONMENT.compile(text).evaluate({}).value is True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("url('http://[::1')",
         "URL parse error during conversion from string: parse \"http://[::1\": missing ']' in host"),
        ("url('x y')", 'URL parse error during conversion from string: parse "x y": invalid URI for request'),
        ("url('https://h:p/')",
         'URL parse error during conversion from string: parse "https://h:p/": invalid port ":p" after host'),
        ("ip('1.2.3')",
         'IP Address "1.2.3" parse error during conversion from string: ParseAddr("1.2.3"): IPv4 address too short'),
        ("ip('1..2.3')", 'IP Address "1..2.3" parse error during conversion from string: ParseAddr("1..2.3"): IPv4'
         ' field must have at least one digit (at ".2.3")'),
        ("ip('fe8:')", 'IP Address "fe8:" parse error during conversion from string: ParseAddr("fe8:"): colon must be'
         ' followed by more characters (at ":")'),
        ("ip('1::2::3')", 'IP Address "1::2::3" parse error during conversion from string: ParseAddr("1::2::3"):'
         ' multiple :: in address (at ":3")'),
        ("ip('1:2:3')",
         'IP Address "1:2:3" parse error during conversion from string: ParseAddr("1:2:3"): address string too short'),
        ("ip('1:1.2.3.4')", 'IP Address "1:1.2.3.4" parse error during conversion from string: ParseAddr("1:1.2.3.4"):'
         ' embedded IPv4 address must replace the final 2 fields of the address (at "1.2.3.4")'),
        ("ip('::1%a%b')", 'IP address "::1%a%b" with zone value is not allowed'),
        ("cidr('10.0.0.0/8').containsIP('x')", "no such overload"),
        ("quantity('1') == dyn('1')", "no such overload"),
        ("dyn('a') * dyn(2)", "no such overload"),
        ("dyn({}) * dyn(2)", "no such overload: _*_"),
        ("dyn(1)[2.0]", "no such key: 2"),
        ("url('http://a') == dyn(['a'])", "no such overload"),
        ("[1 / 0].sort()",
         "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add"),
        ("[1 / 0].sortBy(x, x)",
         "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add"),
        ("timestamp('0001-01-01T00:00:00Z') - timestamp('9999-01-01T00:00:00Z')", "integer overflow"),
        ("ip('::ffff:1.2.3.4')", 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'),
        ("cidr('10.0.0.0')",
         "network address parse error during conversion from string: network address parse error during conversion from"
         " string: netip.ParsePrefix(\"10.0.0.0\"): no '/'"),
        ("semver('1.2')", "No Major.Minor.Patch elements found"),
        ("semver('1.02.3')", 'Minor number must not contain leading zeroes "02"'),
        ("quantity('1.5').asInteger()", "cannot convert value to integer"),
        ("'abc'.substring(2, 1)", "invalid substring range. start: 2, end: 1"),
        ("'abc'.charAt(9)", "index out of range: 9"),
        ("lists.range(-1)", "lists.range: size must be non-negative, got -1"),
        ("['a', 'b'].map(x, dyn(x)).join(',') + [dyn(1)].join(',')", "join: invalid input: 1"),
        ("('%' + 's').format([])", "index 0 out of range"),
        ("('%').format(['a', 'b'].filter(x, true))", "unexpected end of string"),
    ],
)  # fmt: skip
def test_failures(text: str, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        ENVIRONMENT.compile(text).evaluate({})
    assert str(caught.value) == message
