import '../../style/detail-diff.css';
import { useState } from 'preact/hooks';
import type { PromptDiff } from '../../../../src/library/troupe.ts';
import { tokens as inTokens } from '../../shared/format.ts';
import { go, route } from '../../state/route.ts';
import { originalOf } from '../../state/copied.ts';
import { CacheBreak } from './cache-break.tsx';
import { chosen, newestNumber, NEXT, partsOf, turnBefore, turnLabel } from './chosen.ts';
import { CopiedTurn } from './copied-turn.tsx';
import { DiffMessage } from './diff-message.tsx';
import { Loaded } from './loaded.tsx';
import { signed } from './prompt-grew.tsx';
import { scaleOf } from './prompt-layout.ts';
import { useDiff, useNextPrompt, usePrompt, useTrace } from './turn-answers.ts';
import '../../style/detail-grew.css';

/** The differences between two prompts of the same agent. */
export function DiffTab() {
  const { turnId, isNext } = chosen.value;
  const b = isNext ? NEXT : turnId;
  const a = route.value.vs ?? turnBefore.value;
  const original = originalOf(b) ?? originalOf(a);
  const diff = useDiff(original ? null : a, b);
  if (b === null) return <p class="detail-note">No prompt has been sent yet.</p>;
  return (
    <>
      <DiffTurns a={a} b={b} />
      {original ? (
        <CopiedTurn of={original} />
      ) : a === null ? (
        <p class="detail-note">
          This is the first prompt of this agent. There is nothing to compare it with.
        </p>
      ) : (
        <Loaded of={diff}>{(value) => <Diff diff={value} />}</Loaded>
      )}
    </>
  );
}

/** Fields for the numbers of both turns: any two turns of the agent can be compared. */
function DiffTurns({ a, b }: { a: string | null; b: string }) {
  return (
    <div class="diff-turns">
      <TurnNumber label="From turn" of={a} onPick={(id) => go({ vs: id, tab: 'diff' })} />
      <span aria-hidden="true">→</span>
      <TurnNumber label="to turn" of={b} onPick={(id) => go({ turn: id, vs: a, step: null })} />
    </div>
  );
}

interface TurnNumberProps {
  label: string;
  of: string | null;
  onPick: (turn: string) => void;
}

function TurnNumber({ label, of, onPick }: TurnNumberProps) {
  const { agentId } = chosen.value;
  const { conversation } = route.value;
  const number = of === null ? null : (partsOf(of)?.number ?? null);
  return (
    <label>
      <span>{label}</span>
      <input
        type="number"
        min={1}
        max={newestNumber.value}
        placeholder={of === NEXT ? 'next' : '–'}
        // Not `value`, because every render would then reset what is being typed.
        key={of}
        defaultValue={number ?? ''}
        onChange={({ currentTarget: { value, validity } }) => {
          if (value !== '' && validity.valid) onPick(`${conversation}:${agentId}:${value}`);
        }}
      />
    </label>
  );
}

/** Most changed messages that are shown at first. After a compaction all of them have changed. */
const MOST = 40;

function Diff({ diff }: { diff: PromptDiff }) {
  const { messages, broke, b } = diff;
  const prompt = usePrompt(b.turn, b.turn === null ? null : b.step);
  const sent = prompt.state === 'there' ? prompt.value : null;
  const [most, setMost] = useState(MOST);
  const changes = messages.changes.slice(0, most);
  const rest = messages.changes.length - changes.length;
  const before = changes.filter(({ b: at, a }) => broke !== null && (at ?? a ?? 0) < (broke.message ?? 0));
  const after = changes.slice(before.length);
  return (
    <>
      <DiffTokens diff={diff} />
      {messages.shared > 0 && (
        <p class="diff-shared">
          {messages.shared === 1
            ? 'the first message is the same'
            : `${messages.firstDifference === null ? 'all' : 'the first'} ${messages.shared} messages are the same`}
        </p>
      )}
      {before.map((change) => (
        <DiffMessage key={`${change.a} ${change.b}`} change={change} prompt={sent} />
      ))}
      {broke && <CacheBreak broke={broke} before={diff.a.turn} />}
      {after.map((change) => (
        <DiffMessage key={`${change.a} ${change.b}`} change={change} prompt={sent} />
      ))}
      {rest > 0 && (
        <button type="button" class="long-more" onClick={() => setMost(most + 200)}>
          show more of {rest} other messages
        </button>
      )}
      {messages.changes.length === 0 && (
        <p class="detail-note">Nothing differs from {turnLabel(diff.a.turn ?? '')}.</p>
      )}
    </>
  );
}

/** The differences in tokens, in total and by layer. */
function DiffTokens({ diff: { tokens, layers, b } }: { diff: PromptDiff }) {
  const { scale, isDue } = useScale(b);
  const scaled = (count: number) => Math.round(count * scale);
  const estimate = (count: number) => inTokens(scaled(count), { isEstimate: true });
  const changed = layers.filter(
    ({ change, tokens: { a, b: now, delta } }) => a + now > 0 && (change !== 'equal' || scaled(delta) !== 0),
  );
  return (
    <>
      <p class="diff-sum">
        {isDue ? (
          '\u00A0'
        ) : (
          <>
            <strong>{signed(scaled(tokens.delta))} tokens</strong>, {estimate(tokens.a)} →{' '}
            {estimate(tokens.b)}, estimated
          </>
        )}
      </p>
      <ul class="diff-layers">
        {changed.map(({ name, change, tokens: { delta } }) => (
          <li key={name} class={`layer-${name} diff-${change}`}>
            <span class="prompt-swatch" aria-hidden="true" />
            <span>{name}</span>
            <span class="diff-delta">
              {change === 'equal' ? 'grew' : change} {scaled(delta) !== 0 && signed(scaled(delta))}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

/** The same scale as in the Prompt tab: it follows the vendor's count of the later prompt. `isDue`: that count is loading. */
function useScale({ turn, step }: PromptDiff['b']): { scale: number; isDue: boolean } {
  const next = useNextPrompt(turn === null ? chosen.value.agentId : null);
  const prompt = usePrompt(turn, turn === null ? null : step);
  const trace = useTrace(turn);
  const laid = turn === null ? next : prompt;
  const isDue = laid.state === 'loading' || (turn !== null && trace.state === 'loading');
  if (laid.state !== 'there') return { scale: 1, isDue };
  const call = trace.state === 'there' ? trace.value.prompts.find((each) => each.step === step) : undefined;
  return { scale: scaleOf({ ...laid.value, usage: call?.usage ?? laid.value.usage }), isDue };
}
