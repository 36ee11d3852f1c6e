import type Anthropic from '@anthropic-ai/sdk';
import { flattenMessages } from '../cli/flatten-messages.ts';
import type { ModelRequest } from '../provider.ts';
import { tellSchema } from '../plain-schema.ts';

export type PromptBlock = Anthropic.TextBlockParam | Anthropic.ImageBlockParam;

/**
 * The content of a request: instructions, and one user message with the words and images of all other messages. The
 * CLI itself adds the names of the files in which it stores the images.
 */
export interface PromptBlocks {
  system: string;
  blocks: PromptBlock[];
}

/** The API refuses empty texts, and the CLI waits forever if there is nothing else. */
const NO_WORDS = '(no words)';

export function promptBlocks({ messages: asked, images, replySchema }: ModelRequest): PromptBlocks {
  // A resumed session has its instructions already.
  const begins = asked[0]?.role === 'system';
  const messages = begins && replySchema ? tellSchema(asked, replySchema) : asked;
  const { system, texts } = flattenMessages(messages);
  const spoken = messages.filter(({ role }) => role !== 'system');
  const blocks = spoken.flatMap((message, i): PromptBlock[] => {
    const pictures = message.role === 'user' ? (message.images ?? []) : [];
    const shown = pictures.flatMap(({ hash, mediaType }): PromptBlock[] => {
      const data = images?.get(hash);
      return data === undefined ? [] : [imageBlock(data, mediaType)];
    });
    const text = (texts[i] ?? '').toWellFormed();
    return text.trim() === '' ? shown : [...shown, { type: 'text', text }];
  });
  return { system, blocks: blocks.length > 0 ? blocks : [{ type: 'text', text: NO_WORDS }] };
}

function imageBlock(
  data: string,
  media_type: Anthropic.Base64ImageSource['media_type'],
): Anthropic.ImageBlockParam {
  return { type: 'image', source: { type: 'base64', media_type, data } };
}
