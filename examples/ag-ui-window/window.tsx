import { HttpAgent } from '@ag-ui/client';
import {
  AssistantRuntimeProvider,
  ComposerPrimitive,
  MessagePrimitive,
  ThreadPrimitive,
  useAuiState,
} from '@assistant-ui/react';
import {
  useAgUiInterrupts,
  useAgUiRuntime,
  useAgUiState,
  useAgUiSubmitInterruptResponses,
} from '@assistant-ui/react-ag-ui';
import { createRoot } from 'react-dom/client';

type Room = { agents?: Record<string, { name: string }> };

const agent = new HttpAgent({ url: '/api/conversations/support-18/ag-ui', threadId: 'support-18' });
/** The log is the truth: a page that is loaded asks for it, and for what is going on. */
const history = {
  load: () => Promise.resolve({ messages: [], unstable_resume: true }),
  append: () => Promise.resolve(),
};

/** The id of what an agent says begins with its turn: conversation:agent:number. */
function Author() {
  const { id, role } = useAuiState(({ message }) => message);
  const { agents = {} } = useAgUiState<Room>() ?? {};
  return <h3>{role === 'user' ? 'You' : agents[id.split(':')[1] ?? '']?.name}</h3>;
}

function Message() {
  return (
    <section>
      <Author />
      <MessagePrimitive.Parts
        components={{
          Text: ({ text }) => <p>{text}</p>,
          tools: {
            Fallback: ({ toolName, argsText }) => (
              <pre>
                {toolName} {argsText}
              </pre>
            ),
          },
        }}
      />
    </section>
  );
}

function Approvals() {
  const submit = useAgUiSubmitInterruptResponses();
  return useAgUiInterrupts().map(({ id: interruptId, message }) => {
    const decide = (approved: boolean) =>
      void submit([{ interruptId, status: 'resolved', payload: { approved } }]);
    return (
      <p key={interruptId} role="status">
        {message} <button onClick={() => decide(true)}>Approve</button>
        <button onClick={() => decide(false)}>Deny</button>
      </p>
    );
  });
}

function Window() {
  // assistant-ui is typed for @ag-ui/client 0.0.58: that of 1.0 has more kinds of messages.
  const runtime = useAgUiRuntime({ agent: agent as never, adapters: { history } });
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <ThreadPrimitive.Root>
        <ThreadPrimitive.Messages components={{ Message }} />
        <Approvals />
        <ComposerPrimitive.Root>
          <ComposerPrimitive.Input aria-label="Message" />{' '}
          <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>
        </ComposerPrimitive.Root>
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}

createRoot(document.body).render(<Window />);
