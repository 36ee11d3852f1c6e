import { useState } from 'preact/hooks';
import type { PromptLayer } from '../../../../src/events/index.ts';
import type { InspectedPrompt } from '../../../../src/troupe.ts';
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
  const [most, setMost] = useState(MOST);
  const { name, source } = layer;
  const { cached, tools } = prompt;
  const system = useSystemParts(prompt.messages, prompt.layers);
  const isFrozen = layer.stability === 'epoch' && name !== 'tools';
  const text = isFrozen && system.state === 'there' ? (system.value?.get(name) ?? null) : null;
  const shown = isFrozen && (text !== null || system.state === 'loading') ? [] : messages;
  const hidden = Math.max(0, shown.length - most);
  const reminder = name === 'live' ? liveOf(prompt) : '';
  return (
    <div class="prompt-body">
      <p class="prompt-source">
        <Source source={source} /> · {layer.stability} ·{' '}
        <code title={layer.hash}>{layer.hash.slice(0, 8)}</code>
      </p>
      {name === 'tools' && tools.map((tool) => <ToolSpecView key={tool.name} tool={tool} />)}
      {text !== null && <LongText text={text} />}
      {isFrozen && text === null && system.state === 'there' && name !== 'rules' && (
        <p class="quiet">Part of the system message, which is shown whole under “rules”.</p>
      )}
      {name === 'live' &&
        (reminder === '' ? <p class="quiet">Nothing new was told.</p> : <LongText text={reminder} />)}
      {hidden > 0 && (
        <button type="button" class="long-more" onClick={() => setMost(most + 200)}>
          show {plural(Math.min(200, hidden), 'earlier message')} of {hidden}
        </button>
      )}
      {shown.slice(hidden).map(({ index, message }) => (
        <PromptMessageView key={index} index={index} message={message} isCached={index < cached.messages} />
      ))}
      {own.length > 0 && <p class="prompt-own">said and done in this turn</p>}
      {own.map(({ index, message }) => (
        <PromptMessageView key={index} index={index} message={message} isCached={index < cached.messages} />
      ))}
    </div>
  );
}

/** The live block, which is appended to the message that woke the agent. */
function liveOf({ messages }: InspectedPrompt): string {
  for (const { role, content } of messages.toReversed()) {
    const from = role === 'user' ? content.lastIndexOf('\n<reminder-') : -1;
    if (from !== -1) return content.slice(from + 1);
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
