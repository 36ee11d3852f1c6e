/** What Ana demands, by the turn in which she says it: in many wordings, and one in the middle of a long message. */
export const DEMANDS: Readonly<Record<number, string>> = {
  2: 'The shop must never store credit card numbers.',
  5: 'We can’t use PHP.',
  9: 'Prices must always be shown in Swiss francs.',
  12: 'Keep the whole budget below 4,000 francs.',
  16: 'Nothing may be deleted before ten years have passed.',
  19: 'Only Mr. Keller approves refunds.',
  23: 'Never send mail to customers on Sundays.',
  27: 'No customer data leaves Switzerland.',
  30: 'From now on, all texts are in French and German.',
  34: 'Photos should be at most 200 kB.',
};

/** Around the demand of this turn stands what people paste: the demand is one sentence of many. */
export const LONG_TURN = 16;
export const LONG_TEXT = [
  'Yesterday I met the people from the warehouse again, and we went through the whole year.',
  'They told me that most of the orders come in on Monday mornings, and that two of them pack while one prints the labels.',
  'Last spring they had a flood in the cellar and lost a shelf of old papers, which gave the tax office a bad week.',
].join(' ');

export const TOPICS = [
  'the list of products and how it is sorted',
  'the basket, and what happens when a product is sold out',
  'the page that tells of delivery times',
  'the search field and its suggestions',
  'how returns are handled by the warehouse',
  'the export of orders for the bookkeeper',
  'the photos, their sizes and how they are loaded',
  'the newsletter and how somebody leaves it',
];
