// What an SMS costs: the same count as the gateway's (3GPP TS 23.038).
'use strict';

const basic = new Set('@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà');
const extension = new Set('\f^{}\\[~]|€');

// measure answers encoding, characters, units (septets or UTF-16 code units),
// segments and the characters that make the text UCS-2. A character of two
// units is never cut.
function measure(text) {
  const characters = [...text];
  const unicode = [...new Set(characters.filter((c) => !basic.has(c) && !extension.has(c)))];
  const plain = unicode.length === 0;
  const [single, part] = plain ? [160, 153] : [70, 67];
  let units = 0;
  let full = 0; // segments that are filled
  let fill = 0; // units in the one after them
  for (const c of characters) {
    const width = plain ? (extension.has(c) ? 2 : 1) : c.length;
    units += width;
    fill += width;
    if (fill > part) {
      full += 1;
      fill = width;
    }
  }
  let segments = full + 1;
  if (units === 0) segments = 0;
  else if (units <= single) segments = 1;
  return { encoding: plain ? 'gsm7' : 'ucs2', characters: characters.length, units, segments, unicode };
}

if (typeof module !== 'undefined') module.exports = { measure };
