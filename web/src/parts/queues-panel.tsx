import type { ComponentChildren } from 'preact';
import type { ProviderLoad, RunningLine, TurnQueue } from '../../../src/library/troupe.ts';
import { duration, whole } from '../shared/format.ts';
import { queues, waitWords } from '../state/inbox.ts';
import { StuckList } from './stuck-list.tsx';
import { TurnLink } from './turn-link.tsx';
import '../style/queues.css';

/** The queue: who waits for what, who runs, and the counts. */
export function QueuesPanel() {
  const report = queues.value;
  if (!report) return null;
  const { wait, turns, providers } = report;
  return (
    <section aria-label="Queues" id="queues">
      <h2>Queues</h2>
      <dl class="who-queues">
        {(['waiting', 'active', 'delayed', 'failed'] as const).map((name) => {
          const count = report[name];
          // Hides counts that the server's queue does not report.
          if (count === undefined) return null;
          const tone = count === 0 ? 'queue-none' : name === 'failed' ? 'problem' : '';
          return <Figure key={name} name={name} value={whole(count)} class={tone} />;
        })}
        {turns.oldestMs !== null && <Figure name="oldest" value={duration(turns.oldestMs)} />}
        {wait && (
          <>
            <Figure name="wait p50" value={duration(wait.p50Ms)} />
            <Figure name="wait p95" value={duration(wait.p95Ms)} />
          </>
        )}
        {providers
          .filter(({ turns: cap, waiting }) => cap !== null || waiting > 0)
          .map((load) => (
            <div key={load.provider} class="queue-figure queue-provider">
              <dt class="clip">{load.provider}</dt>
              <dd>{slots(load)}</dd>
            </div>
          ))}
      </dl>
      <Turns turns={turns} />
      <StuckList />
    </section>
  );
}

function Figure({ name, value, class: tone = '' }: { name: string; value: string; class?: string }) {
  return (
    <div class="queue-figure">
      <dt>{name}</dt>
      <dd class={tone}>{value}</dd>
    </div>
  );
}

function slots({ turns, running, waiting }: ProviderLoad): string {
  const held = turns === null ? `${whole(running)} running` : `${whole(running)} of ${whole(turns)} slots`;
  return waiting === 0 ? held : `${held}, ${whole(waiting)} waiting`;
}

/** Most lines of each list. The API and the command line have all. */
const MOST = 5;

function Turns({ turns: { waiting, waitingTotal, running, runningTotal } }: { turns: TurnQueue }) {
  return (
    <>
      <List label="Waiting turns" total={waitingTotal}>
        {waiting.slice(0, MOST).map((line) => (
          <li key={`${line.conversation} ${line.agent}`}>
            <TurnLink of={line} /> {waitWords(line)}
          </li>
        ))}
      </List>
      <List label="Running turns" total={runningTotal}>
        {running.slice(0, MOST).map((line) => (
          <li key={line.turn}>
            <TurnLink of={line} /> {runs(line)}
          </li>
        ))}
      </List>
    </>
  );
}

function runs({ provider, since }: RunningLine): string {
  const time = duration(Date.now() - since);
  return provider === null ? `runs for ${time}` : `runs for ${time} with ${provider}`;
}

function List({ label, total, children }: { label: string; total: number; children: ComponentChildren }) {
  if (total === 0) return null;
  return (
    <>
      <h3>{label}</h3>
      <ul class="who-stuck" aria-label={label}>
        {children}
        {total > MOST && <li class="quiet">and {whole(total - MOST)} more</li>}
      </ul>
    </>
  );
}
