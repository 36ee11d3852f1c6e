import { useEffect, useState } from 'preact/hooks';
import type { Attachment } from '../../../../src/events/index.ts';
import { api } from '../../state/api.ts';
import { messageOf } from '../../shared/format.ts';

interface AttachmentsProps {
  of: readonly Attachment[];
  conversation: string;
  seq: number;
}

/** The files of a message: images are shown, texts can be opened, others can be saved. */
export function Attachments({ of, conversation, seq }: AttachmentsProps) {
  return (
    <ul class="words-files" aria-label="Attachments">
      {of.map((file, index) => (
        <li key={index}>
          {file.type === 'text' ? (
            <details>
              <summary>{file.name ?? file.mediaType}</summary>
              <pre class="words-code" tabIndex={0}>
                {file.text}
              </pre>
            </details>
          ) : (
            <Stored file={file} place={{ conversation, seq, index }} />
          )}
        </li>
      ))}
    </ul>
  );
}

interface StoredProps {
  file: Exclude<Attachment, { type: 'text' }>;
  place: { conversation: string; seq: number; index: number };
}

/** An image is loaded at once, any other file on request. */
function Stored({ file, place: { conversation, seq, index } }: StoredProps) {
  const [url, setUrl] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isAsked, setAsked] = useState(file.type === 'image');
  const name = file.name ?? file.mediaType;
  const type = file.type === 'image' ? file.mediaType : 'application/octet-stream';
  useEffect(() => {
    if (!isAsked) return;
    let made: string | null = null;
    let isOver = false;
    api.attachment(conversation, { seq, index, type }).then(
      (blob) => {
        if (isOver) return;
        made = URL.createObjectURL(blob);
        setUrl(made);
      },
      (error: unknown) => !isOver && setProblem(messageOf(error)),
    );
    return () => {
      isOver = true;
      if (made !== null) URL.revokeObjectURL(made);
    };
  }, [isAsked, conversation, seq, index, type]);
  const size = <span class="quiet">{Math.ceil(file.bytes / 1_000)} kB</span>;
  if (problem !== null)
    return (
      <span class="problem">
        {name} did not load: {problem}
      </span>
    );
  if (url === null)
    return (
      <button type="button" class="button" disabled={isAsked} onClick={() => setAsked(true)}>
        {name} {size}
      </button>
    );
  return (
    <a href={url} download={name}>
      {file.type === 'image' ? (
        <img src={url} alt={name} />
      ) : (
        <>
          Save {name} {size}
        </>
      )}
    </a>
  );
}
