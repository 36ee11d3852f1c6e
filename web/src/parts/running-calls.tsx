import { progressInWords } from '../../../src/library/projection/words.ts';
import type { RunningCall } from '../state/running-calls.ts';

const WORDS = {
  writing: 'being written',
  running: 'running',
  done: 'done',
  failed: 'failed',
  lost: 'lost',
  waiting: 'waiting',
};
const SHOWN_CHARS = 300;

/** The tool calls of a running turn as they happen. */
export function RunningCalls({ calls }: { calls: readonly RunningCall[] }) {
  return (
    <ul class="running-calls" aria-label="Tool calls so far">
      {calls.map(({ step, call, name, args, status, progress, text }) => (
        <li key={`${step} ${call}`} class={`running-call running-call-${status}`} data-call={call}>
          <b>{name}</b> <code>{args.slice(0, SHOWN_CHARS)}</code>{' '}
          <span class="quiet">
            {WORDS[status]}
            {progress && status === 'running' && `: ${progressInWords(progress)}`}
          </span>
          {progress?.total !== undefined && progress.total > 0 && status === 'running' && (
            <progress aria-label={`Progress of ${name}`} value={progress.done ?? 0} max={progress.total} />
          )}
          {text !== '' && <p class="running-result">{text.slice(0, SHOWN_CHARS)}</p>}
        </li>
      ))}
    </ul>
  );
}
