import { useState } from 'preact/hooks';
import type { PromptLayer } from '../../../../src/events/index.ts';
import type { InspectedPrompt } from '../../../../src/library/troupe.ts';
import { plural } from '../../shared/format.ts';
import { Go } from '../../shared/go.tsx';
import { EventLink } from './event-link.tsx';
import { LongText } from './long-text.tsx';
import type { Placed } from './prompt-layout.ts';
import { PromptMessageView } from './prompt-message.tsx';
import { useSystemParts } from './system-parts.ts';
import { ToolSpecView } from './tool-spec.tsx';

interface LayerBodyProps {
  layer: PromptLayer;
  prompt: InspectedPrompt;
  messages: readonly Placed[];
  /** Steps of this turn; they count as history. */
  own: readonly Placed[];
}

const MOST = 30;

/** The content of a layer. Rendered only when opened, since a history may hold thousands of messages. */
export function LayerBody({ layer, prompt, messages, own }: LayerBodyProps) {
  const { name, source } = layer;
  const { cached, tools } = prompt;
  const { isThere, isLoading, text } = useFrozenText(layer, prompt);
  const shown = text !== null || isLoading ? [] : messages;
  return (
    <div class="prompt-body">
      <p class="prompt-source">
        <Source source={source} /> · {layer.stability} ·{' '}
        <code title={layer.hash}>{layer.hash.slice(0, 8)}</code>
      </p>
      {name === 'tools' && tools.map((tool) => <ToolSpecView key={tool.name} tool={tool} />)}
      {text !== null && <LongText text={text} />}
      {isThere && text === null && name !== 'rules' && (
        <p class="quiet">Part of the system message, which is shown whole under “rules”.</p>
      )}
      {name === 'live' && <Reminder text={liveOf(prompt)} />}
      <Messages messages={shown} cached={cached.messages} />
      {own.length > 0 && <p class="prompt-own">steps of this turn</p>}
      {own.map(({ index, message }) => (
        <PromptMessageView key={index} index={index} message={message} isCached={index < cached.messages} />
      ))}
    </div>
  );
}

/** The text of a frozen layer, found within the system message; null for other layers and while unknown. */
function useFrozenText({ name, stability }: PromptLayer, { messages, layers }: InspectedPrompt) {
  const system = useSystemParts(messages, layers);
  const isFrozen = stability === 'epoch' && name !== 'tools';
  const isThere = isFrozen && system.state === 'there';
  const text = isThere ? (system.value?.get(name) ?? null) : null;
  return { isThere, isLoading: isFrozen && system.state === 'loading', text };
}

function Reminder({ text }: { text: string }) {
  return text === '' ? <p class="quiet">Nothing new.</p> : <LongText text={text} />;
}

/** The newest messages; older ones are shown on request. */
function Messages({ messages, cached }: { messages: readonly Placed[]; cached: number }) {
  const [most, setMost] = useState(MOST);
  const hidden = Math.max(0, messages.length - most);
  return (
    <>
      {hidden > 0 && (
        <button type="button" class="long-more" onClick={() => setMost(most + 200)}>
          show {plural(Math.min(200, hidden), 'earlier message')} of {hidden}
        </button>
      )}
      {messages.slice(hidden).map(({ index, message }) => (
        <PromptMessageView key={index} index={index} message={message} isCached={index < cached} />
      ))}
    </>
  );
}

/** The live block at the end of a message: a time, or items up to the line that ends them. */
const LIVE = /\n\n(?:\[[\d :-]+(?:\([^()\n]*\) #\d{6})?\]|\[reminder #(\d{6})\]\n[^]*\n#\1)$/;

/** The live block, which is appended to the message that woke the agent. */
function liveOf({ messages }: InspectedPrompt): string {
  for (const { role, content } of messages.toReversed()) {
    const from = role === 'user' ? content.search(LIVE) : -1;
    if (from !== -1) return content.slice(from + 2);
  }
  return '';
}

function Source({ source }: { source: string }) {
  const range = /^(\d+)\.\.(\d+)$/.exec(source);
  const [, from, to] = range ?? [];
  if (from !== undefined && to !== undefined) {
    return (
      <>
        events <EventLink seq={Number(from)} /> to <EventLink seq={Number(to)} />
      </>
    );
  }
  const turn = /:(\d+)$/.exec(source);
  if (turn && !source.startsWith('baseline:')) {
    return (
      <>
        from <Go to={{ turn: source, tab: 'events', event: null }}>turn {turn[1]}</Go>
      </>
    );
  }
  return (
    <>
      from <code>{source === '' ? 'the log' : source}</code>
    </>
  );
}
