import type { AgentId, Cut } from '../../../../src/events/index.ts';
import type { CompactionView } from '../../../../src/library/projection/model.ts';
import { COMPACTION_REASONS } from '../../../../src/library/projection/words.ts';
import { plural, short } from '../../shared/format.ts';
import { shown } from '../../state/live.ts';
import { nameOf } from '../../state/selection.ts';
import { CompactionCard } from '../compaction-card.tsx';
import { chosen } from './chosen.ts';

/** A prune or compaction, with details from the log. */
type CutDetail = Cut & { by?: AgentId; strategy?: string; trimmed?: number; steps?: number };

const MOST = 5;

/** The prunes and compactions in force: what was removed, why, and how much. */
export function PromptCompactions({ cuts }: { cuts: readonly CutDetail[] }) {
  const own = compactionsOfTurn();
  const turn = chosen.value.turnId;
  // This turn's compactions have a card of their own, with their outcome.
  const older = own.length === 0 ? cuts : cuts.filter(({ event }) => !event.startsWith(`${turn}:`));
  if (older.length + own.length === 0) return null;
  return (
    <section class="prompt-compactions" aria-label="Compactions">
      <h3>Compactions</h3>
      {own.map((compaction) => (
        <CompactionCard key={compaction.seq} compaction={compaction} />
      ))}
      <ul>
        {older.slice(-MOST).map((cut) => {
          const { before, after, trigger } = cut.tokens;
          return (
            <li key={cut.event}>
              <p>
                <strong>{whatOf(cut)}</strong>
                <span class="prompt-compaction-gain">
                  {short(before)} → {short(after)} tokens, −
                  {Math.round((1 - after / Math.max(1, before)) * 100)}%
                </span>
              </p>
              <div class="prompt-compaction-bars" aria-hidden="true">
                <span style={{ width: '100%' }} />
                <span style={{ width: `${(after / Math.max(1, before)) * 100}%` }} />
                {trigger > 0 && trigger < before && <i style={{ left: `${(trigger / before) * 100}%` }} />}
              </div>
              <p class="quiet">
                {COMPACTION_REASONS[cut.reason]}
                {before > trigger && trigger > 0 && ` (${short(before)} > ${short(trigger)})`}
                {cut.by !== undefined && `; by ${nameOf(cut.by)} with ${cut.strategy}`}
              </p>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** The compactions that ran during this turn. */
function compactionsOfTurn(): CompactionView[] {
  const { turn, agentId } = chosen.value;
  if (!turn) return [];
  const compactions = shown.value?.compactions ?? [];
  return compactions.filter(
    ({ agent, seq }) => agent === agentId && seq >= turn.from && seq <= (turn.to ?? seq),
  );
}

function whatOf({ kind, compaction, upTo = 0, results = 0, trimmed = 0, steps = 0 }: CutDetail): string {
  const beside = [
    ...(steps > 0 ? [`${plural(steps, 'step')} as text`] : []),
    ...(trimmed > 0 ? [`${plural(trimmed, 'text')} shortened`] : []),
    ...(results > 0 ? [`${plural(results, 'tool output')} removed`] : []),
  ];
  if (kind === 'prune') return beside.join(', ') || 'Tool outputs removed';
  return [...(compaction ? [`Summary of events 1–${upTo}`] : []), ...beside].join(', ') || 'Shortened';
}
