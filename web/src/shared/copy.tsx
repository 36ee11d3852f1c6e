import { useState } from 'preact/hooks';

/** An id as it is in logs and on the command line; a click copies it. */
export function Copy({ text, label = text }: { text: string; label?: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    // Without a clipboard, as on plain http of another machine, the text can still be selected.
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
