// The segment calculator.
'use strict';

(() => {
  const words = document.documentElement.dataset;
  const calculator = document.getElementById('calculator');
  const field = calculator.querySelector('textarea');
  const outputs = Object.fromEntries([...calculator.querySelectorAll('output')].map((o) => [o.id, o]));
  const show = () => {
    const size = measure(field.value);
    outputs['segment-count'].textContent = size.segments;
    outputs['segment-encoding'].textContent = size.encoding === 'gsm7' ? 'GSM-7' : 'Unicode (UCS-2)';
    outputs['segment-characters'].textContent = `${size.characters} ${words.of}`;
    outputs['segment-unicode'].textContent = size.unicode.length ? size.unicode.join('  ') : words.none;
  };
  field.addEventListener('input', show);
  calculator.hidden = false;
  show();
})();
