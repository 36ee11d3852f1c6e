import { useChat } from '@ai-sdk/react';
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from 'ai';
import { createRoot } from 'react-dom/client';

const id = 'support-17';
const api = `/api/conversations/${id}/chat`;
const history = (await (await fetch(api)).json()) as { messages: UIMessage[] };
const transport = new DefaultChatTransport({ api });

/** Words of model calls that failed do not count. */
function counting({ parts }: UIMessage): UIMessage['parts'] {
  const gone = parts.flatMap(({ type, ...part }) => (type === 'data-void' ? Object(part).data.ids : []));
  return parts.filter(
    (part) => part.type !== 'text' || !gone.includes(part.providerMetadata?.['troupe']?.['id']),
  );
}

function Chat() {
  const { messages, sendMessage, addToolApprovalResponse, status, error } = useChat({
    id,
    messages: history.messages,
    transport,
    resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const send = (form: FormData) => void sendMessage({ text: form.get('words') as string });
  function show(part: UIMessage['parts'][number], key: number) {
    if (part.type === 'data-author') return <h3 key={key}>{(part.data as { name: string }).name}</h3>;
    if (part.type === 'text') return <p key={key}>{part.text}</p>;
    if (part.type !== 'dynamic-tool') return null;
    const call = `${part.toolName} ${JSON.stringify(part.input) ?? ''}: ${part.state}`;
    if (part.state !== 'approval-requested') return <pre key={key}>{call}</pre>;
    const decide = (approved: boolean) => void addToolApprovalResponse({ id: part.approval.id, approved });
    return (
      <pre key={key}>
        {call} <button onClick={() => decide(true)}>Approve</button>
        <button onClick={() => decide(false)}>Deny</button>
      </pre>
    );
  }

  return (
    <main>
      {messages.map((message) => (
        <section key={message.id} aria-label={message.role} children={counting(message).map(show)} />
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form action={send}>
        <input name="words" aria-label="Message" /> <button disabled={status !== 'ready'}>Send</button>
      </form>
    </main>
  );
}

createRoot(document.body).render(<Chat />);
