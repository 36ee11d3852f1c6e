import { clock } from '../../shared/format.ts';
import { memo } from '../../shared/memo.ts';
import { Person } from '../../shared/person.tsx';
import { nameOf } from '../../state/selection.ts';
import type { HandoffItem } from '../../state/reading-items.ts';

const PARTS = [
  ['done', 'Done'],
  ['state', 'State'],
  ['next', 'Next'],
  ['why', 'Why'],
] as const;

/** A handoff: from whom to whom, for which purpose, and what the receiver is told. */
export const HandedOver = memo(function HandedOver({ item }: { item: HandoffItem }) {
  const { author, to, summary, at } = item;
  const told = PARTS.filter(([key]) => summary[key] !== '');
  const lists = [
    ['Open questions', summary.openQuestions],
    ['Artifacts', summary.artifacts],
  ] as const;
  return (
    <article class="handed" aria-label={`${author.name} hands over to ${to.join(', ')}`}>
      <p class="handed-head">
        <Person author={author} />
        <span>
          <b>
            <bdi>{author.name}</bdi>
          </b>{' '}
          hands over to{' '}
          <b>
            <bdi>{to.map(nameOf).join(', ')}</bdi>
          </b>
        </span>
        <span class="spring" />
        <span class="words-time">{clock(at).slice(0, 5)}</span>
      </p>
      <p dir="auto">{summary.goal}</p>
      {(told.length > 0 || lists.some(([, items]) => items.length > 0)) && (
        <details>
          <summary>What the receiver is told</summary>
          <dl class="fields">
            {told.map(([key, label]) => (
              <div key={key}>
                <dt>{label}</dt>
                <dd dir="auto">{summary[key]}</dd>
              </div>
            ))}
            {lists.map(
              ([label, items]) =>
                items.length > 0 && (
                  <div key={label}>
                    <dt>{label}</dt>
                    <dd dir="auto">{items.join(', ')}</dd>
                  </div>
                ),
            )}
          </dl>
        </details>
      )}
    </article>
  );
});
