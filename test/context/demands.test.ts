import { describe, expect, test } from 'vitest';
import { collectFacts } from '../../src/context/extract/facts.ts';
import { at, personSays } from '../support/extract-events.ts';

const demandsIn = (text: string) =>
  collectFacts(at([personSays(text)]), null).constraints.map((one) => one.text);

describe('talk among people at ease', () => {
  test.each([
    'I always love our evenings by the lake.',
    "You must be so proud of her, that's wonderful!",
    'That must have been a long day.',
    "I had to take the bus, and it's never on time.",
    'Never give up, you are almost there!',
    'We should meet again some day.',
    "Don't worry, I found my keys.",
    'It was the only cafe that had a table without a reservation.',
    'No worries, take your time.',
    'No worries, John.',
    'No me gusta.',
    'No changes a week later.',
    'Non avete idea.',
    'Meine Eltern sind gestern nicht gekommen.',
    'Die Kinder wollten nicht schlafen.',
    'Der Zug kommt nicht an.',
    'Gefällt mir nicht.',
    "I can't wait to see the pictures.",
    'Dogs are always there for you.',
    'Maybe I should try it too.',
    "I'll make sure to bring the cake.",
    'Ich habe das immer gern gemacht.',
    "C'était toujours un plaisir, vraiment.",
    'Yo siempre estaba feliz en casa.',
    'Never saw this coming.',
    'Never wrote to him again.',
    'The sign says, "Always look on the bright side of life".',
    '[image: never give up.png, image/png, 12 kB]',
    'It made me see the need to give back.',
    'No comes con nosotros.',
    'No le escribes.',
    'El cliente no tiene el libro.',
    'Não sabe nada.',
  ])('demands nothing: "%s"', (text) => {
    expect(demandsIn(text)).toEqual([]);
  });
});

describe('what somebody demands', () => {
  test.each([
    'Every endpoint needs to be documented.',
    'Could you please not use abbreviations?',
    'Leave the config file alone.',
    'No customer data leaves the country.',
    'She must approve every invoice.',
    'Prices always include VAT.',
    'We never ship on Fridays.',
    'It would be great if you never used emojis in replies.',
    'The API key must stay secret!',
    "I can't eat nuts.",
    'I want all texts in plain English.',
    "Thanks! One more thing, don't rename the columns.",
    'Never sent without a review.',
    "Don't saw the beam.",
    'The rule says: never deploy on Fridays.',
  ])('is found: "%s"', (text) => {
    expect(demandsIn(text)).not.toEqual([]);
  });

  test.each([
    ['nl', 'Verwijder nooit de logbestanden.'],
    ['pl', 'Nie wolno publikować przed poniedziałkiem.'],
    ['sv', 'Du får inte publicera före måndag.'],
    ['tr', 'Lütfen müşteriyi aramayın.'],
    ['ar', 'لا تحذف السجلات أبدا.'],
    ['he', 'אסור לפרסם לפני יום שני.'],
    ['hi', 'सोमवार से पहले प्रकाशित न करें।'],
    ['ko', '로그를 절대 삭제하지 마세요.'],
    ['vi', 'Không được công bố trước thứ Hai.'],
    ['de', 'Schreib dem Kunden nicht.'],
    ['de', 'Fass den Bericht nicht an.'],
    ['de', 'Den Kunden nicht anrufen.'],
    ['es', 'No lo borres.'],
    ['es', 'No comas con nosotros.'],
    ['es', 'No le escribas.'],
    ['pt', 'Não fale com o cliente.'],
    ['it', 'Non chiamarlo.'],
    ['zh', '别给客户打电话。'],
    ['ja', '顧客に電話しないで。'],
    ['uk', 'Не можна публікувати до понеділка.'],
    ['fi', 'Älä koskaan poista lokeja.'],
  ])('is found (%s)', (_, text) => {
    expect(demandsIn(text)).toEqual([text]);
  });
});
