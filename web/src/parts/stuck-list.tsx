import { useState } from 'preact/hooks';
import type { StuckLine } from '../../../src/library/troupe.ts';
import { CommandButton } from '../shared/command-button.tsx';
import { whole } from '../shared/format.ts';
import { broken, stuck, stuckWords } from '../state/inbox.ts';
import { nameOf } from '../state/selection.ts';
import { TurnLink } from './turn-link.tsx';
import '../style/queues.css';

/** Most lines; further ones are marked in the list of conversations. On a phone they would hide that list. */
const mostLines = () => (innerWidth > 700 ? 10 : 2);

/** Stuck work, in the server's words. Each line links to its turn, with the possible remedy beside it. */
export function StuckList() {
  const report = stuck.value;
  const [isWhole, setWhole] = useState(false);
  if (!report) return null;
  const { awayServers = [] } = report;
  const all = broken.value;
  if (all.length + awayServers.length === 0) return null;
  const shown = isWhole ? all : all.slice(0, mostLines());
  const more = all.length - shown.length;
  return (
    <ul class="who-stuck" aria-label="Stuck work">
      {awayServers.map(({ server, agents }) => (
        <li key={server}>
          <span class="problem">the tool server {server} is away</span>: {agents.map(nameOf).join(', ')}{' '}
          without its tools
        </li>
      ))}
      {shown.map((line) => (
        <li key={`${line.conversation} ${line.agent}`}>
          <TurnLink of={line} /> <span class="problem">{stuckWords(line)}</span> <StuckAction line={line} />
        </li>
      ))}
      {more > 0 && (
        <li>
          <button type="button" class="button" onClick={() => setWhole(true)}>
            and {whole(more)} more
          </button>
        </li>
      )}
    </ul>
  );
}

/** The remedies for stuck work. */
export function StuckAction({ line: { agent, turn, reason, actions } }: { line: StuckLine }) {
  if (reason.kind === 'undefined')
    return (
      <span class="quiet">
        <code>aliases: ['{agent}']</code> gives its work to the agent that it is now; its tasks can be
        cancelled in the conversation
      </span>
    );
  if (turn !== null && actions.includes('abort'))
    return <CommandButton command={{ command: 'abort', turn }} label="Abort" />;
  if (!actions.includes('raise_limit')) return null;
  const setting = reason.kind === 'slot_full' ? 'turns' : 'callsPerMinute';
  return (
    <span class="quiet">
      a higher <code>limits.providers.*.{setting}</code> lets more run
    </span>
  );
}
