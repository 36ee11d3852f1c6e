import '../../style/detail-message.css';
import { useMemo, useState } from 'preact/hooks';
import type { PromptDiff, SentPrompt } from '../../../../src/library/troupe.ts';
import { plural } from '../../shared/format.ts';
import { hovers } from '../../state/hovered.ts';
import { EventLink } from './event-link.tsx';
import { type DiffLine, withWords } from './word-diff.ts';

type Change = PromptDiff['messages']['changes'][number];

/** Marks omitted lines. Every other line of a diff starts with `+`, `-` or a space. */
const GAP = '@';
/** Lines of a run of additions or removals that are shown before the reader expands it. */
const MAX_RUN = 6;
const MAX_RUNS = 12;
const SIGNS: Record<string, string> = { '+': 'diff-added', '-': 'diff-removed' };
const WORDS: Record<string, string> = { '+': 'added: ', '-': 'removed: ' };

/** The diff of one message, line by line. */
export function DiffMessage({
  change: { a, b, role, hunks },
  prompt,
}: {
  change: Change;
  prompt: SentPrompt | null;
}) {
  const [isOpen, setOpen] = useState(false);
  const lines = useMemo(
    () => withWords(hunks.flatMap((hunk, index) => (index === 0 ? hunk.lines : [GAP, ...hunk.lines]))),
    [hunks],
  );
  const seqs = (b === null ? undefined : prompt?.messages[b]?.seqs) ?? [];
  const seen = shortRuns(lines);
  const isLong = seen.length < lines.length;
  const what = a === null ? 'new' : b === null ? 'gone' : 'changed';
  return (
    <article class={`diff-message diff-${what}`} {...hovers(seqs.length === 1 ? (seqs[0] ?? null) : null)}>
      <header>
        <span class="message-role">{role}</span>
        <span class="diff-what">{what}</span>
        {seqs.slice(0, 3).map((seq) => (
          <EventLink key={seq} seq={seq} />
        ))}
        {seqs.length > 3 && <span class="quiet">and {seqs.length - 3} more</span>}
        <span class="message-index">{b ?? a}</span>
      </header>
      <pre>
        {(isOpen ? lines : seen).map((each, index) => (
          <span key={index} class={each.line === GAP ? 'diff-gap' : (SIGNS[each.line.charAt(0)] ?? '')}>
            {each.line === GAP ? '⋯' : <Line of={each} />}
            {'\n'}
          </span>
        ))}
      </pre>
      {isLong && (
        <button type="button" class="long-more" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'show less' : `show all ${plural(lines.length, 'line')}`}
        </button>
      )}
    </article>
  );
}

/** Shortens long runs, so that a removed output of a thousand lines does not hide the line that replaced it. */
function shortRuns(lines: readonly DiffLine[]): DiffLine[] {
  const runs: DiffLine[][] = [];
  for (const each of lines) {
    const run = runs.at(-1);
    if (run && run[0]?.line.charAt(0) === each.line.charAt(0) && each.line !== GAP) run.push(each);
    else runs.push([each]);
  }
  const gap = { line: GAP, pieces: null };
  const seen = runs.slice(0, MAX_RUNS).flatMap((run) => {
    return run.length > MAX_RUN + 2 ? [...run.slice(0, MAX_RUN), gap] : run;
  });
  return runs.length > MAX_RUNS ? [...seen, gap] : seen;
}

function Line({ of: { line, pieces } }: { of: DiffLine }) {
  const sign = line.charAt(0);
  return (
    <>
      <span class="diff-sign" aria-hidden="true">
        {sign}
      </span>
      {WORDS[sign] !== undefined && <span class="unseen">{WORDS[sign]}</span>}
      {pieces === null
        ? line.slice(1)
        : pieces.map(({ text, isChanged }, index) =>
            isChanged ? (
              <mark key={index} class="diff-word">
                {text}
              </mark>
            ) : (
              text
            ),
          )}
    </>
  );
}
