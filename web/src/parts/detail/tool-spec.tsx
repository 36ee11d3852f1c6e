import '../../style/detail-message.css';
import type { ToolSpec } from '../../../../src/events/index.ts';
import { LongText } from './long-text.tsx';

/** A tool as it is described to the model. */
export function ToolSpecView({ tool: { name, description, parameters } }: { tool: ToolSpec }) {
  const fields = Object.keys((parameters['properties'] ?? {}) as object);
  return (
    <details class="tool-spec">
      <summary>
        <code>{name}</code>
        <span class="tool-fields">({fields.join(', ')})</span>
        <span class="tool-about">{description}</span>
      </summary>
      <p>{description}</p>
      <LongText text={JSON.stringify(parameters, null, 2)} />
    </details>
  );
}
