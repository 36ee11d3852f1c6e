import '../../style/detail-tools.css';
import { plural } from '../../shared/format.ts';
import { Go } from '../../shared/go.tsx';
import { originalOf } from '../../state/copied.ts';
import { nameOf } from '../../state/selection.ts';
import { chosen } from './chosen.ts';
import { CopiedTurn } from './copied-turn.tsx';
import { EventLink } from './event-link.tsx';
import { Loaded } from './loaded.tsx';
import { LongText } from './long-text.tsx';
import { threadOfCall } from '../../state/threads.ts';
import { ToolSpecView } from './tool-spec.tsx';
import { prettyJson, type ToolUse, toolUsesOf } from './tool-uses.ts';
import { usePrompt, useTrace } from './turn-answers.ts';

/** The tools offered to the model, and the calls it made. */
export function ToolsTab() {
  const { turnId } = chosen.value;
  const trace = useTrace(turnId);
  const original = originalOf(turnId);
  const prompt = usePrompt(original ? null : turnId, null);
  if (turnId === null)
    return <p class="detail-note">Choose a turn to see which tools it was offered and called.</p>;
  return (
    <>
      <Loaded of={trace}>{({ events }) => <Called uses={toolUsesOf(events)} />}</Loaded>
      {original && <CopiedTurn of={original} />}
      {!original && (
        <Loaded of={prompt}>
          {({ tools }) => (
            <section aria-label="Tools offered">
              <h3>
                Offered <span class="quiet">{tools.length}</span>
              </h3>
              {tools.length === 0 && <p class="detail-note">No tools.</p>}
              {tools.map((tool) => (
                <ToolSpecView key={tool.name} tool={tool} />
              ))}
            </section>
          )}
        </Loaded>
      )}
    </>
  );
}

function Called({ uses }: { uses: readonly ToolUse[] }) {
  const counts = Map.groupBy(uses, ({ name }) => name);
  return (
    <section aria-label="Tools called">
      <h3>
        Called <span class="quiet">{uses.length}</span>
        {counts.size > 1 && (
          <span class="tools-counts">
            {[...counts].map(([name, { length }]) => (
              <code key={name}>
                {name} {length}
              </code>
            ))}
          </span>
        )}
      </h3>
      {uses.length === 0 && <p class="detail-note">No calls.</p>}
      {uses.map((use) => (
        <Use key={`${use.call} ${use.seq}`} use={use} />
      ))}
    </section>
  );
}

const OUTCOMES: Record<string, string> = {
  done: '✓ done',
  failed: '✕ failed',
  lost: '? lost: unknown whether it ended',
  waiting: '… waits for approval',
};

function Use({ use: { call, name, args, seq, result } }: { use: ToolUse }) {
  const pretty = prettyJson(args);
  const task = threadOfCall(result?.content ?? null);
  return (
    <article class="tool-use">
      <header>
        <code>{name}</code>
        <span class={`tool-outcome tool-${result?.outcome ?? 'open'}`}>
          {result ? (OUTCOMES[result.outcome] ?? result.outcome) : 'no result yet'}
        </span>
        <span class="tool-events">
          <EventLink seq={seq} title={`The call, ${call}`} />
          {result && <EventLink seq={result.seq} title="Its result" />}
        </span>
      </header>
      {task !== null && (
        <p>
          <Go to={{ conversation: task.thread }}>The thread of {nameOf(task.assignee ?? '')}</Go>
          <span class="quiet">, {task.outcome ?? 'under way'}</span>
        </p>
      )}
      <LongText text={pretty} lines={8} class="tool-args" />
      {result && <LongText text={result.content} lines={6} class="tool-result" />}
      {result !== null && result.artifact !== null && (
        <p class="quiet">
          All of it ({plural(result.content.length, 'character')} are shown here):{' '}
          <code>{result.artifact}</code>
        </p>
      )}
    </article>
  );
}
