import { useState } from 'preact/hooks';
import type { CompactionView } from '../../../src/library/projection/model.ts';
import { clock, duration, short, tokens, whole } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import {
  COMPACTION_PHASES,
  COMPACTION_REASONS,
  COMPACTION_STRATEGIES,
} from '../../../src/library/projection/words.ts';
import { nameOf } from '../state/selection.ts';
import { useEvent } from './detail/turn-answers.ts';
import '../style/compaction.css';

/** One compaction of an agent's view. Closed: how much and why. Open: what was dropped and what replaces it. */
export function CompactionCard({
  compaction,
  isOpen = false,
}: {
  compaction: CompactionView;
  isOpen?: boolean;
}) {
  const [opened, setOpened] = useState(isOpen);
  const { agent, phase, reduced, strategy, tokens: size, seq, message } = compaction;
  return (
    <details
      class={`compaction ${phase === 'failed' ? 'compaction-failed' : ''}`}
      open={isOpen}
      onToggle={(event) => setOpened((event.currentTarget as HTMLDetailsElement).open)}
    >
      <summary>
        <span class="compaction-title">
          <b>
            <bdi>{nameOf(agent)}</bdi>
          </b>{' '}
          {COMPACTION_PHASES[phase]}
          {reduced !== null && <>, {Math.round(reduced)}% smaller</>}
        </span>
        <span class="quiet clip">
          {short(size.before)}
          {size.after !== null && ` → ${short(size.after)}`}
        </span>
        <span class="quiet">#{seq}</span>
      </summary>
      {opened && (
        <div class="compaction-body">
          <Sizes before={size.before} after={size.after} />
          <dl>
            <dt>Why</dt>
            <dd>{COMPACTION_REASONS[compaction.reason]}</dd>
            {strategy && (
              <>
                <dt>How</dt>
                <dd>{COMPACTION_STRATEGIES[strategy]}</dd>
              </>
            )}
            {compaction.range && (
              <>
                <dt>Dropped</dt>
                <dd>
                  <Go to={{ list: 'events', kind: '*', event: compaction.range.from }}>
                    events {compaction.range.from}–{compaction.range.upTo}
                  </Go>
                  , kept in the log
                </dd>
                <dt>Kept</dt>
                <dd>events {compaction.range.upTo + 1} and later, word for word</dd>
              </>
            )}
            {compaction.endedAt !== null && (
              <>
                <dt>Took</dt>
                <dd>
                  {duration(compaction.endedAt - compaction.at)}, at {clock(compaction.at)}
                </dd>
              </>
            )}
            {message && (
              <>
                <dt>Said</dt>
                <dd>{message}</dd>
              </>
            )}
          </dl>
          {compaction.summarySeq !== null && <Summary seq={compaction.summarySeq} />}
        </div>
      )}
    </details>
  );
}

function Sizes({ before, after }: CompactionView['tokens']) {
  const bar = (label: string, count: number) => (
    <div class="compaction-size">
      <span>{label}</span>
      <span class="compaction-track">
        <span style={{ width: `${before === 0 ? 0 : (count / before) * 100}%` }} />
      </span>
      <span>{tokens(count, { isEstimate: true })}</span>
    </div>
  );
  return (
    <div class="compaction-sizes">
      {bar('Before', before)}
      {after !== null && bar('After', after)}
    </div>
  );
}

function Summary({ seq }: { seq: number }) {
  const found = useEvent(seq);
  if (found.state === 'loading') return <p class="quiet">Reading the summary …</p>;
  if (found.state === 'failed') return <p class="quiet">{found.message}</p>;
  const event = found.value;
  if (event?.kind !== 'compaction') return <p class="quiet">The summary no longer exists.</p>;
  const { summary, quotes, demands, listing, number, by, usage, strategy } = event.body;
  const parts = [
    `number ${number}, by ${nameOf(by)}, ${COMPACTION_STRATEGIES[strategy]}`,
    ...(usage ? [`${whole(usage.input)} tokens in, ${whole(usage.output)} out`] : []),
  ];
  return (
    <div class="compaction-summary">
      <p class="quiet">
        <Go to={{ event: seq, tab: 'raw' }}>Event {seq}</Go>, {parts.join(', ')}
      </p>
      {summary !== '' && <pre tabIndex={0}>{summary}</pre>}
      {quotes.length > 0 && (
        <pre tabIndex={0}>
          {quotes
            .map((quote) => `${quote.seq} ${quote.speaker}: ${quote.text}${quote.cut ? ' …' : ''}`)
            .join('\n')}
        </pre>
      )}
      {demands !== '' && <pre tabIndex={0}>{demands}</pre>}
      {listing !== '' && <pre tabIndex={0}>{listing}</pre>}
    </div>
  );
}
