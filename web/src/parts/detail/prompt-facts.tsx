import type { InspectedPrompt } from '../../../../src/library/troupe.ts';
import type { ComponentChildren } from 'preact';
import { dollars, whole } from '../../shared/format.ts';
import { EventLink } from './event-link.tsx';

interface PromptFactsProps {
  prompt: InspectedPrompt;
  cost: number | null;
  verified: boolean | null;
  erased?: boolean;
}

/** The footer of a prompt: its recipient, size and cost. */
export function PromptFacts({ prompt, cost, verified, erased = false }: PromptFactsProps) {
  const { provider, model, mode, tokens, usage, compaction, count, delta, role, settings } = prompt;
  const facts: [string, ComponentChildren][] = [
    ['Answers', <Triggers of={prompt.triggers} />],
    ['Role', role],
    ['Model', `${model} (${provider})`],
    ['Settings', settings ? settingsText(settings) : 'not known: the agent has another model now'],
    [
      'Sent',
      mode === 'full'
        ? `whole, ${whole(count)} messages`
        : `as a delta on ${whole(delta?.sent ?? 0)} messages`,
    ],
    ['Window', `${whole(tokens.window)}; compacts at ${whole(compaction.at)}, in ${whole(compaction.left)}`],
    ...(usage
      ? ([
          ['In', `${whole(usage.input)}`],
          [
            'Out',
            `${whole(usage.output)}${usage.reasoning > 0 ? `, ${whole(usage.reasoning)} of it reasoning` : ''}`,
          ],
          ['Cache', `${whole(usage.cacheRead)} read, ${whole(usage.cacheWrite)} written`],
        ] as [string, string][])
      : []),
    ...(cost === null ? [] : ([['Cost', dollars(cost)]] as [string, string][])),
  ];
  return (
    <footer class="prompt-facts">
      <dl>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {verified !== null && (
        <p class={verified ? 'prompt-verified' : 'prompt-unverified'}>
          {verified
            ? '✓ Rendered again from the log: byte for byte what was sent'
            : erased
              ? '○ Words of what was sent are erased: this is what is left of it'
              : '✕ The log no longer reproduces the bytes that were sent: this is what it renders now'}
        </p>
      )}
    </footer>
  );
}

/** The events that the turn answers. */
function Triggers({ of }: { of: InspectedPrompt['triggers'] }) {
  if (of.length === 0) return <>nothing new</>;
  return (
    <>
      {of.map(({ id, seq, kind, author }) => (
        <span key={id} class="prompt-trigger">
          {kind} of <bdi>{author.name}</bdi> <EventLink seq={seq} />
        </span>
      ))}
    </>
  );
}

/** As in the agents file: `maxOutputTokens 800, temperature 0`. */
function settingsText(settings: NonNullable<InspectedPrompt['settings']>): string {
  return Object.entries(settings)
    .map(([name, value]) => `${name} ${Array.isArray(value) ? JSON.stringify(value) : value}`)
    .join(', ');
}
