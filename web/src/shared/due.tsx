import { remaining } from './format.ts';

const SOON_MS = 3_600_000;

/** When a question, an approval or a task expires. */
export function Due({ at }: { at: number | null }) {
  if (at === null) return null;
  const left = at - Date.now();
  return (
    <time
      class={left < SOON_MS ? 'due due-soon' : 'due'}
      dateTime={new Date(at).toISOString()}
      title={`until ${new Date(at).toLocaleString()}`}
    >
      {left <= 0 ? 'expired' : `expires in ${remaining(left)}`}
    </time>
  );
}
