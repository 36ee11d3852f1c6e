import type Anthropic from '@anthropic-ai/sdk';
import { flattenMessages } from '../cli/flatten-messages.ts';
import type { ModelRequest } from '../provider.ts';
import { tellSchema } from '../plain-schema.ts';

export type PromptBlock = Anthropic.TextBlockParam | Anthropic.ImageBlockParam;

/**
 * What is sent of a request: instructions, and one message of a user with the words and pictures of all others. After
 * pictures the CLI itself tells the model in which files of its own it keeps them.
 */
export interface PromptBlocks {
  system: string;
  blocks: PromptBlock[];
}

/** The API refuses texts without a word, and the CLI waits for ever when there is nothing else. */
const NO_WORDS = '(no words)';

export function promptBlocks({ messages: asked, images, replySchema }: ModelRequest): PromptBlocks {
  // Where a session goes on, its instructions have it.
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
