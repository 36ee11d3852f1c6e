import { appendSchema, type ModelRequest, shownImages } from '../troupe.ts';
import { flattenMessages } from '../flatten-messages.ts';

export type PromptBlock =
  | { type: 'text'; text: string }
  | { type: 'image'; source: { type: 'base64'; media_type: string; data: string } };

/**
 * The content of a request: instructions, and one user message with the words and images of all other messages. The
 * CLI itself adds the names of the files in which it stores the images.
 */
interface PromptBlocks {
  system: string;
  blocks: PromptBlock[];
}

/** The API refuses empty texts, and the CLI waits forever if there is nothing else. */
const NO_WORDS = '(no words)';

export function promptBlocks({ messages: asked, images, replySchema }: ModelRequest): PromptBlocks {
  // A resumed session has its instructions already.
  const begins = asked[0]?.role === 'system';
  const messages = begins && replySchema ? appendSchema(asked, replySchema) : asked;
  const { system, texts } = flattenMessages(messages);
  const spoken = messages.filter(({ role }) => role !== 'system');
  const blocks = spoken.flatMap((message, i): PromptBlock[] => {
    const named = message.role === 'user' ? message.images : [];
    const shown = shownImages(named, images).map(({ mediaType, data }): PromptBlock => ({
      type: 'image',
      source: { type: 'base64', media_type: mediaType, data },
    }));
    const text = (texts[i] ?? '').toWellFormed();
    return text.trim() === '' ? shown : [...shown, { type: 'text', text }];
  });
  return { system, blocks: blocks.length > 0 ? blocks : [{ type: 'text', text: NO_WORDS }] };
}
