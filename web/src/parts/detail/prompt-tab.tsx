import '../../style/detail-prompt.css';
import type { InspectedPrompt, SentPrompt, TurnTrace } from '../../../../src/library/troupe.ts';
import { originalOf } from '../../state/copied.ts';
import { go, route } from '../../state/route.ts';
import { CopiedTurn } from './copied-turn.tsx';
import { chosen, turnBefore } from './chosen.ts';
import { ContextBar } from './context-bar.tsx';
import { FailedTurn } from './failed-turn.tsx';
import { Loaded } from './loaded.tsx';
import { PromptCompactions } from './prompt-compactions.tsx';
import { PromptFacts } from './prompt-facts.tsx';
import { PromptGrew } from './prompt-grew.tsx';
import { PromptLayers } from './prompt-layers.tsx';
import { isRunning, useDiff, useNextPrompt, usePrompt, useTrace } from './turn-answers.ts';

/** The prompt that the model was sent, layer by layer, and why it has its size. */
export function PromptTab() {
  const { isNext, turnId, agentId } = chosen.value;
  if (isNext) return <NextPrompt agent={agentId} />;
  if (turnId === null) return <p class="detail-note">No prompt has been sent yet.</p>;
  const original = originalOf(turnId);
  if (original) return <CopiedTurn of={original} />;
  return <TurnPrompt turn={turnId} key={turnId} />;
}

function NextPrompt({ agent }: { agent: string | null }) {
  const prompt = useNextPrompt(agent);
  return <Loaded of={prompt}>{(value) => <Prompt prompt={value} trace={null} />}</Loaded>;
}

function TurnPrompt({ turn }: { turn: string }) {
  const { step } = route.value;
  const trace = useTrace(turn);
  const prompt = usePrompt(turn, step);
  const steps = trace.state === 'there' ? trace.value.prompts.length : 0;
  return (
    <>
      <FailedTurn />
      {steps > 1 && <Steps count={steps} chosen={step ?? steps} />}
      <Loaded of={prompt} {...(isRunning(turn) && { calm: NOT_YET })}>
        {(value) => <Prompt prompt={value} trace={trace.state === 'there' ? trace.value : null} />}
      </Loaded>
    </>
  );
}

const NOT_YET = { turn_unknown: 'This turn runs and has sent no prompt yet.' };

function Steps({ count, chosen: at }: { count: number; chosen: number }) {
  return (
    <div class="prompt-steps" role="group" aria-label="Model calls of this turn">
      <span class="quiet">model call</span>
      {Array.from({ length: count }, (_, index) => index + 1).map((step) => (
        <button
          key={step}
          type="button"
          aria-pressed={step === at}
          onClick={() => go({ step: step === count ? null : step })}
        >
          {step}
        </button>
      ))}
    </div>
  );
}

interface PromptProps {
  prompt: InspectedPrompt | SentPrompt;
  trace: TurnTrace | null;
}

function Prompt({ prompt, trace }: PromptProps) {
  const before = turnBefore.value;
  const found = useDiff(before, prompt.turn ?? 'next', prompt.turn === null ? null : prompt.step);
  const diff = found.state === 'there' ? found.value : null;
  const call = trace?.prompts.find(({ step }) => step === prompt.step);
  const sent = { ...prompt, usage: call?.usage ?? prompt.usage };
  return (
    <>
      <ContextBar prompt={sent} diff={diff} />
      <PromptGrew
        prompt={sent}
        diff={diff}
        before={before}
        isAsked={found.state === 'loading' && before !== null}
      />
      <PromptLayers prompt={sent} diff={diff} inputs={inputsOf(trace)} />
      <PromptCompactions cuts={prompt.cuts} />
      <PromptFacts
        prompt={sent}
        cost={call?.cost ?? null}
        verified={'verified' in prompt ? prompt.verified : null}
        erased={'erased' in prompt && prompt.erased === true}
      />
    </>
  );
}

/** The seqs that the turn answers; for the next prompt, those that are pending. */
function inputsOf(trace: TurnTrace | null): readonly number[] {
  const started = trace?.events.find(({ kind }) => kind === 'turn.started');
  return started?.kind === 'turn.started' ? started.body.inputs : (chosen.value.agent?.pending ?? []);
}
