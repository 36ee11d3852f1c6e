import { createRoot } from 'react-dom/client';
import { useMemo, useState } from 'react';
import { createTroupeClient } from '../../src/index.ts';
import { useApprovals, useConversation } from '../../src/react.ts';

function Room() {
  const [text, setText] = useState('');
  const [key, setKey] = useState('');
  const troupe = useMemo(
    () => createTroupeClient({ url: location.origin, token: key === '' ? undefined : key }),
    [key],
  );
  const { messages, status, error, send } = useConversation(troupe, 'room');
  const { approvals, decide, error: unread } = useApprovals(troupe, 'room');
  return (
    <main>
      <output>{error ? error.message : status}</output>
      {unread && <p role="alert">{unread.message}</p>}
      <ul>
        {messages.map(({ id, text: said, isStreaming, ...shown }) => (
          <li key={id} aria-busy={isStreaming} data-shown={JSON.stringify(shown)}>
            {shown.author.name}: {said}
          </li>
        ))}
      </ul>
      {approvals.map((task) => (
        <button
          key={task.id}
          type="button"
          disabled={!task.decidable}
          onClick={() => void decide(task, { approved: true })}
        >
          Approve {task.tool} {task.args}
        </button>
      ))}
      <input aria-label="Key" value={key} onChange={({ target }) => setKey(target.value)} />
      <input aria-label="Message" value={text} onChange={({ target }) => setText(target.value)} />
      <button type="button" onClick={() => void send({ to: ['desk'], content: text })}>
        Send
      </button>
    </main>
  );
}

const root = document.querySelector('#root');
if (root) createRoot(root).render(<Room />);
