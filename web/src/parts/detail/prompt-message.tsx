import '../../style/detail-message.css';
import { useState } from 'preact/hooks';
import type { PromptMessage } from '../../../../src/events/index.ts';
import { ERASED_WORDS } from '../../../../src/events/erased-words.ts';
import { plural } from '../../shared/format.ts';
import { hovered, hovers } from '../../state/hovered.ts';
import { EventLink } from './event-link.tsx';
import { FENCE, HEADER, type Segment, segmentsOf } from './message-segments.ts';

interface PromptMessageProps {
  index: number;
  message: PromptMessage;
  isCached: boolean;
}

const MAX_LINES = 12;
/** Characters above which lines wrap into too many on the screen. */
const MAX_CHARS = 1_200;

/** One message as the model reads it, with the source event beside each line. */
export function PromptMessageView({ index, message, isCached }: PromptMessageProps) {
  const { role, seqs } = message;
  const segments = segmentsOf(message);
  const count = segments.reduce((sum, { lines }) => sum + lines.length, 0);
  const isLong = count > MAX_LINES + 2 || message.content.length > MAX_CHARS * 1.2;
  const [isOpen, setOpen] = useState(false);
  const seen = isOpen || !isLong ? segments : clipped(segments);
  return (
    <article class={`message message-${role}`} aria-label={`Message ${index}, ${role}`}>
      <header>
        <span class="message-role">{role}</span>
        {role === 'tool' && <code>{message.name}</code>}
        {marksOf(message).map((mark) => (
          <span key={mark} class={`message-mark message-${mark}`}>
            {mark}
          </span>
        ))}
        {isCached && <span class="message-cached" title="The previous prompt began the same way" />}
        <span class="message-index">
          {seqs.length > 1 && `${seqs.length} events · `}
          {index}
        </span>
      </header>
      {seen.map((segment, at) => (
        <Lines key={at} segment={segment} />
      ))}
      {isLong && (
        <button type="button" class="long-more" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'show less' : `show all ${plural(count, 'line')}`}
        </button>
      )}
      {message.role === 'assistant' &&
        message.calls?.map(({ id, name, args }) => (
          <p class="message-call" key={id}>
            <code>{name}</code> <span>{args}</span>
          </p>
        ))}
      {message.role === 'user' &&
        message.images?.map(({ hash, mediaType }) => (
          <p class="message-image" key={hash}>
            image, {mediaType}, <code>{hash.slice(0, 12)}</code>
          </p>
        ))}
    </article>
  );
}

function Lines({ segment: { seq, lines } }: { segment: Segment }) {
  return (
    <div
      class={`message-lines ${seq !== null && hovered.value === seq ? 'event-hovered' : ''}`}
      {...hovers(seq)}
    >
      <span class="message-seq">{seq !== null && <EventLink seq={seq} />}</span>
      <pre>
        {lines.map((line, index) => (
          <Line key={index} line={line} />
        ))}
      </pre>
    </div>
  );
}

/** Fences are dimmed; names of speakers stand out. */
function Line({ line }: { line: string }) {
  if (FENCE.test(line)) return <span class="message-fence">{`${line}\n`}</span>;
  const head = HEADER.exec(line)?.[0] ?? '';
  return (
    <>
      {head !== '' && <b>{head}</b>}
      {`${line.slice(head.length)}\n`}
    </>
  );
}

function marksOf(message: PromptMessage): string[] {
  return message.content.includes(ERASED_WORDS) ? [...kindsOf(message), 'erased'] : kindsOf(message);
}

function kindsOf(message: PromptMessage): string[] {
  const { content } = message;
  if (message.role === 'tool') {
    const isPruned = /^\[the output of .* was removed to make room/.test(content);
    return [...(message.failed ? ['failed'] : []), ...(isPruned ? ['pruned'] : [])];
  }
  return [
    ...(/^\[new #/m.test(content) ? ['missed'] : []),
    ...(/^\[[^\]\n]*handed this conversation over to you #/m.test(content) ? ['handoff'] : []),
    ...(/^<summary-/m.test(content) ? ['summary'] : []),
  ];
}

function clipped(segments: readonly Segment[]): Segment[] {
  let [lines, chars] = [MAX_LINES, MAX_CHARS];
  const seen: Segment[] = [];
  for (const segment of segments) {
    const some: string[] = [];
    for (const line of segment.lines) {
      if (lines <= 0 || chars <= 0) break;
      some.push(line.slice(0, chars));
      lines -= 1;
      chars -= line.length;
    }
    if (some.length > 0) seen.push({ seq: segment.seq, lines: some });
  }
  return seen;
}
