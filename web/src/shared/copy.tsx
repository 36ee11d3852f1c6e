import { useState } from 'preact/hooks';

/** An id as in logs and on the command line. A click copies it. */
export function Copy({ text, label = text }: { text: string; label?: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    // Without a clipboard, as over plain http from another machine, the text can still be selected.
    await navigator.clipboard?.writeText(text).catch(() => {});
    setCopied(true);
    setTimeout(() => setCopied(false), 1_200);
  };
  return (
    <button type="button" class="copy" title={`Copy ${text}`} onClick={() => void copy()}>
      {label}
      <span class="unseen" role="status">
        {isCopied ? 'copied' : ''}
      </span>
      {isCopied && (
        <span class="copied" aria-hidden="true">
          copied
        </span>
      )}
    </button>
  );
}
