import { useState } from 'preact/hooks';
import type { PromptLayer } from '../../../../src/events/index.ts';
import type { InspectedPrompt, PromptDiff } from '../../../../src/library/troupe.ts';
import { tokens as inTokens } from '../../shared/format.ts';
import { turnLabel } from './chosen.ts';
import { LayerBody } from './layer-body.tsx';
import { signed } from './prompt-grew.tsx';
import { messagesByLayer, type Placed, scaleOf, slicesOf } from './prompt-layout.ts';
import '../../style/detail-grew.css';

interface PromptLayersProps {
  prompt: InspectedPrompt;
  diff: PromptDiff | null;
  inputs: readonly number[];
}

const OPEN_FIRST: readonly string[] = ['trigger', 'missed', 'note'];

/** The layers in the order they are sent; each expands to its content. */
export function PromptLayers({ prompt, diff, inputs }: PromptLayersProps) {
  const messages = messagesByLayer(prompt, inputs);
  const sizes = new Map(slicesOf(prompt).map(({ name, tokens }) => [name, tokens]));
  return (
    <section class="prompt-layers" aria-label="Layers">
      <div class="prompt-layers-head" aria-hidden="true">
        <span>Layer</span>
        <span>Tokens</span>
        <span>{diff?.a.turn ? `Since ${turnLabel(diff.a.turn)}` : 'Change'}</span>
      </div>
      {prompt.layers.map((layer) => (
        <Layer
          key={`${layer.name} ${prompt.turn} ${prompt.step}`}
          layer={layer}
          tokens={sizes.get(layer.name) ?? 0}
          change={diff?.layers.find(({ name }) => name === layer.name) ?? null}
          prompt={prompt}
          messages={messages.get(layer.name) ?? []}
          own={layer.name === 'history' ? (messages.get('own') ?? []) : []}
        />
      ))}
    </section>
  );
}

interface LayerProps {
  layer: PromptLayer;
  tokens: number;
  change: PromptDiff['layers'][number] | null;
  prompt: InspectedPrompt;
  messages: readonly Placed[];
  own: readonly Placed[];
}

function Layer({ layer, tokens, change, prompt, messages, own }: LayerProps) {
  const { name } = layer;
  const isEmpty = tokens === 0;
  const [isOpen, setOpen] = useState(!isEmpty && OPEN_FIRST.includes(name));
  return (
    <details
      class={`prompt-layer layer-${name} ${isEmpty ? 'prompt-empty' : ''}`}
      open={isOpen}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>
        <span class="prompt-swatch" aria-hidden="true" />
        <span class="prompt-layer-name">{name}</span>
        <span class="prompt-number">
          {isEmpty ? '–' : inTokens(Math.round(tokens), { isEstimate: true })}
        </span>
        <span class="prompt-number prompt-change">{changeOf(change, scaleOf(prompt))}</span>
      </summary>
      {isOpen && <LayerBody layer={layer} prompt={prompt} messages={messages} own={own} />}
    </details>
  );
}

function changeOf(change: LayerProps['change'], scale: number): string {
  if (!change) return '';
  const delta = Math.round(change.tokens.delta * scale);
  if (change.change === 'equal') return delta === 0 ? '' : `grew ${signed(delta)}`;
  if (change.change === 'added') return `new ${signed(delta)}`;
  return delta === 0 ? 'changed' : signed(delta);
}
