import type { ShownCondition } from '../../../src/library/projection/needs.ts';

/** Words for each condition, because colour alone must never carry meaning. */
export const CONDITION_WORDS: Record<ShownCondition, string> = {
  failed: 'failed',
  waiting: 'needs you',
  running: 'running',
  held: 'waiting',
  queued: 'queued',
  paused: 'paused',
  idle: 'idle',
  retired: 'retired',
  left: 'left',
};

const ICONS: Record<ShownCondition, string> = {
  failed: 'M4 4l8 8M12 4l-8 8',
  waiting: 'M8 3v6M8 12v1',
  running: 'M5 3l8 5-8 5z',
  held: 'M4 3h8M4 13h8M5 3l6 10M11 3L5 13',
  queued: 'M8 3a5 5 0 1 0 0.01 0M8 5v3l2 2',
  paused: 'M6 3v10M10 3v10',
  idle: 'M8 8m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0',
  retired: 'M3 8h10',
  left: 'M4 8h8M9 5l3 3-3 3',
};

/** Icon and word; empty space if unknown. With `isTerse` the word is for screen readers only. */
export function Condition({ of, isTerse = false }: { of: ShownCondition | null; isTerse?: boolean }) {
  if (of === null) return <span class="condition">{isTerse ? '' : '–'}</span>;
  return (
    <span class={`condition condition-${of}`}>
      <svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
        <path d={ICONS[of]} />
      </svg>
      <span class={isTerse ? 'unseen' : ''}>{CONDITION_WORDS[of]}</span>
    </span>
  );
}
