import { Agents } from './agents.tsx';
import { Conversations } from './conversations.tsx';
import { QueuesPanel } from './queues-panel.tsx';
import '../style/who.css';

/** The left column: participants and related work. */
export function Who() {
  return (
    <div class="who">
      <Agents />
      <Conversations />
      <QueuesPanel />
    </div>
  );
}
