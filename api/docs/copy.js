// A button on each block of code that copies it.
'use strict';

(() => {
  const words = document.documentElement.dataset;
  // copy returns whether the text is on the clipboard. Without HTTPS a browser has no navigator.clipboard.
  const copy = async (code) => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      return true;
    } catch {
      getSelection().selectAllChildren(code);
      return document.execCommand('copy');
    }
  };
  for (const block of document.querySelectorAll('pre.code')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copy';
    button.textContent = words.copy;
    button.addEventListener('click', async () => {
      button.textContent = await copy(block.querySelector('code')) ? words.copied : words.copy;
      setTimeout(() => { button.textContent = words.copy; }, 1500);
    });
    block.append(button);
  }
})();
