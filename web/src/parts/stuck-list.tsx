import type { StuckLine } from '../../../src/library/troupe.ts';
import { CommandButton } from '../shared/command-button.tsx';
import { whole } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { stuck } from '../state/inbox.ts';
import '../style/queues.css';

/** The others are marked in the list of conversations. */
const MOST = 10;

/** What does not go on, in the server's words. Each line leads to its turn, with what can be done beside it. */
export function StuckList() {
  const report = stuck.value;
  if (!report) return null;
  const { awayServers = [] } = report;
  if (report.total + awayServers.length === 0) return null;
  const shown = report.stuck.slice(0, MOST);
  const more = report.total - shown.length;
  return (
    <ul class="who-stuck" aria-label="Stuck work">
      {awayServers.map(({ server, agents }) => (
        <li key={server}>
          <span class="problem">the tool server {server} is away</span>:{' '}
          {agents.map((agent) => `@${agent}`).join(', ')} without its tools
        </li>
      ))}
      {shown.map((line) => (
        <li key={`${line.conversation} ${line.agent}`}>
          <Go to={{ conversation: line.conversation, agent: line.agent, turn: line.turn }}>
            @{line.agent} in {line.conversation}
          </Go>{' '}
          <span class="problem">{line.words}</span>{' '}
          {line.reason.kind === 'unanswered' && (
            <span class="quiet" dir="auto">
              {line.reason.text}
            </span>
          )}{' '}
          <Action line={line} />
        </li>
      ))}
      {more > 0 && <li class="quiet">and {whole(more)} more</li>}
    </ul>
  );
}

function Action({ line: { conversation, agent, turn, reason, actions } }: { line: StuckLine }) {
  if (reason.kind === 'unanswered')
    return (
      <span>
        <Go class="button" to={{ conversation, agent }}>
          {actions.includes('decide') ? 'Decide' : 'Answer'}
        </Go>
      </span>
    );
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
