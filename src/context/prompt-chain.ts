import type { PromptMessage } from '../events/index.ts';
import { hashText } from './hash.ts';
import { chainMessage } from './view.ts';

/** The chained hash of a prompt: its system message, then the chain over the view's messages. */
export function promptChain(system: PromptMessage, viewChain: string): string {
  return hashText(`${chainMessage('', system)}\n${viewChain}`);
}

/** The same from the messages themselves. */
export function chainOf([system, ...view]: readonly PromptMessage[]): string {
  if (!system) return '';
  return promptChain(
    system,
    view.reduce((chain, message) => chainMessage(chain, message), ''),
  );
}
