import '../../style/detail-failed.css';
import type { ConversationId } from '../../../../src/events/index.ts';
import type { AgentView } from '../../../../src/library/projection/model.ts';
import { CommandButton } from '../../shared/command-button.tsx';
import { route } from '../../state/route.ts';
import { chosen } from './chosen.ts';
import { EventLink } from './event-link.tsx';

/** The code of a failure, its event and its words. */
export function FailedHead({ of: { code, message, seq } }: { of: NonNullable<AgentView['problem']> }) {
  return (
    <>
      <h3>
        <code>{code}</code> <EventLink seq={seq} />
      </h3>
      <p class="failed-message" dir="auto">
        {message}
      </p>
    </>
  );
}

/** Why an agent starts no further turns, and what a person can do. */
export function FailedAgent() {
  const { agent, actor } = chosen.value;
  const { at, conversation } = route.value;
  if (agent?.parked !== 'failed' || !agent.problem) return null;
  const mayResume = at === null && conversation !== null && actor?.can.includes('resume');
  return (
    <section class="failed" aria-label="Why it failed">
      <FailedHead of={agent.problem} />
      <p>The agent starts no turn until someone resumes it. Messages to it wait; other agents continue.</p>
      {mayResume && (
        <div class="detail-commands">
          <CommandButton
            command={{ command: 'resume', conversation: conversation as ConversationId, agent: agent.id }}
            label="Resume"
            class="button-main"
          />
        </div>
      )}
    </section>
  );
}
