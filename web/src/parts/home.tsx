import type { OverviewLine } from '../state/api.ts';
import { Condition } from '../shared/condition.tsx';
import { Copy } from '../shared/copy.tsx';
import { day, whole } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { overview } from '../state/overview.ts';
import { base } from '../state/settings.ts';
import { SearchAll } from './search-all.tsx';
import '../style/home.css';

/** All conversations; if there are none, how to start one. */
export function Home() {
  const answer = overview.value;
  if (!answer) return <main class="home" aria-label="Conversations" />;
  if (answer.conversations.length === 0) return <Empty />;
  return (
    <main class="home" aria-label="Conversations">
      <h1>Conversations</h1>
      <SearchAll />
      <div class="home-scroller" tabIndex={0} role="group" aria-label="All conversations">
        <table>
          <thead>
            <tr>
              <th>Condition</th>
              <th>Conversation</th>
              <th class="home-number home-wide">Agents</th>
              <th class="home-number home-wide">Turns</th>
              <th class="home-number home-wide">Compactions</th>
              <th class="home-number">Events</th>
              <th class="home-number">Last event</th>
            </tr>
          </thead>
          <tbody>
            {answer.conversations.map((line) => (
              <Line key={line.id} line={line} />
            ))}
          </tbody>
        </table>
      </div>
      {answer.more && <p class="quiet">There are older conversations, too; search finds them.</p>}
    </main>
  );
}

function Line({ line }: { line: OverviewLine }) {
  const { id, condition, agents, turns, compactions, head, at } = line;
  return (
    <tr>
      <td>
        <Condition of={condition} />
      </td>
      <td class="clip">
        <Go to={{ conversation: id }} title={id}>
          {id}
        </Go>
      </td>
      <td class="home-number home-wide">{whole(agents)}</td>
      <td class="home-number home-wide">{whole(turns)}</td>
      <td class="home-number home-wide">{whole(compactions)}</td>
      <td class="home-number">{whole(head)}</td>
      <td class="home-number">{day(at)}</td>
    </tr>
  );
}

/** Three lines to copy. */
function Empty() {
  const url = `${location.origin}${base}`.replace(/\/$/, '');
  const lines = [
    ['Send your agents a message', `npx troupe send hello "Plan a small release" --url ${url} --wait`],
    ['See it in the terminal, too', `npx troupe ls --url ${url}`],
    ['The API of this page, for scripts', `curl ${url}/api/openapi.json`],
  ] as const;
  return (
    <main class="home home-empty">
      <h1>No conversations yet</h1>
      <p>A new conversation appears here, live.</p>
      <ol>
        {lines.map(([what, line]) => (
          <li key={line}>
            {what}
            <Copy text={line} />
          </li>
        ))}
      </ol>
    </main>
  );
}
