/**
 * Words that mark sentences that must not be lost, in English, German, French, Spanish, Portuguese, Italian, Russian, Chinese
 * and Japanese. They match too much rather than too little: a needless sentence costs a few tokens, a lost "never" may cost
 * the task. Every pattern is a plain alternation, tested on one sentence, so no text makes it slow.
 */
const EDGE_BEFORE = String.raw`(?<![\p{L}\p{N}_])`;
const EDGE_AFTER = String.raw`(?![\p{L}\p{N}_])`;

/** `words` must stand alone. Chinese and Japanese have no spaces, so `unspaced` words match anywhere. */
function lexicon(words: readonly string[], unspaced: readonly string[] = []): RegExp {
  const spaced = `${EDGE_BEFORE}(?:${words.join('|')})${EDGE_AFTER}`;
  return new RegExp([spaced, ...unspaced].join('|'), 'iu');
}

/** Obligations, prohibitions, preferences and refusals. */
export const CONSTRAINT = lexicon(
  [
    // English. "I don't know" must not match, "don't touch it" must.
    `must(?:n['’]?t)?|never|always|only|should(?:n['’]?t)?|cannot|forbidden|required?|refuse[sd]?`,
    `do not(?! (?:know|think|remember|recall|understand|see|mind))`,
    `don['’]?t(?! (?:know|think|remember|recall|understand|see|mind|worry))`,
    `prefer(?:s|red|ably|ence)?|rather(?: not)?|avoid|ensure|make sure|be sure|instead|without|won['’]?t`,
    `(?:have|has|had) to|no need|no longer|no (?:more|less|later|earlier) than|at (?:least|most)`,
    `not (?:allowed|interested|acceptable|permitted|before|after|until|unless)|unless|stop \\p{L}+ing`,
    `can['’]?t(?! (?:wait|believe|imagine|remember|recall|see|find|tell|think|help|thank|hear|beat|deny|agree|let|be right))|may not|shall not`,
    `(?:nothing|nobody|no one|none) (?:may|can|shall|is to)|from now on|at all times|use (?:\\p{L}{1,20} ){1,4}(?:everywhere|throughout)`,
    `under no circumstances?|by no means|no (?:later|earlier|sooner)|hard (?:limit|requirement|deadline|constraint)`,
    `(?:budget|limit|maximum|minimum|deadline|requirement|constraint|condition|rule|policy)s?(?: (?:is|are|of)(?! \\p{L}+ed)|:)`,
    `(?:keep|stay|remain|be)s?(?: \\p{L}{1,20}){0,4} (?:below|under|within|above)|(?:below|under|within) [$€£¥]?\\d[\\d.,]*`,
    `(?:important|essential|crucial|vital) that|mandatory|allergic|please (?:use|answer|reply|respond|write|speak|keep|leave)`,
    `(?:i|we) (?:(?:need|want) (?:the|all|every|each|no|our|its)|need (?:it|them)) \\p{L}+`,
    `muss|müssen|musst|müsst|darf|darfst|dürfen|nie|niemals|immer|nur|soll|sollen|sollst|sollte[nst]*|lieber`,
    `bevorzug\\p{L}*|auf keinen fall|keinesfalls|unbedingt|vermeide\\p{L}*|mindestens|höchstens|ausschließlich`,
    `ab (?:jetzt|sofort)|unter keinen umständen|spätestens|frühestens|überall|allergisch|wichtig(?: ist)?,? dass`,
    `bitte (?:nicht|kein\\p{L}*)|(?:will|möchte|wollen|möchten) (?:nicht|kein\\p{L}*)|nicht (?:mehr|erlaubt|ändern|anfassen)`,
    `doi(?:s|t|vent)|devez|devons|faut|jamais|toujours|seulement|uniquement|surtout|évite[rz]?|préfèr\\p{L}*|préféré?`,
    `en aucun cas|à partir de maintenant|désormais|partout|au plus t(?:ard|ôt)|il est important`,
    `interdit\\p{L}*|obligatoire|au (?:moins|plus)|sauf|(?:ne|n['’]\\p{L}+) pas|ne \\p{L}+ (?:pas|plus)|refuse[rz]?`,
    `deb(?:e|es|en|emos)|tienen? que|hay que|nunca|jamás|siempre|solo|sólo|solamente|únicamente|prefier\\p{L}*`,
    `en ningún caso|bajo ningun[ao]?|de ahora en adelante|a partir de (?:ahora|agora)|a más tardar|es importante`,
    `evit(?:a|e|ar|en|es)|prohibid[oa]s?|obligatori[oa]s?|al menos|como máximo|no (?:quiero|queremos|debe\\p{L}*|puede\\p{L}*|se debe)`,
    `por favor,? (?:no|não)|deve[mi]?|devono|devi|tem que|têm que|jamais|sempre|só|somente|apenas|prefir\\p{L}*`,
    `proibid[oa]s?|obrigatóri[oa]s?|pelo menos|no máximo|não (?:quero|queremos|deve\\p{L}*|pode\\p{L}*|use|faça|mexa|toque|altere|apague)`,
    `em (?:nenhum caso|hipótese alguma)|in nessun caso|d['’]ora in poi|ovunque|entro e non oltre|è importante`,
    `bisogna|mai|soltanto|solamente|preferi\\p{L}*|evita\\p{L}*|vietat[oa]|obbligatori[oa]|almeno|al massimo`,
    `per favore,? non|non (?:voglio|vogliamo|deve|devono|\\p{L}+(?:are|ere|ire))`,
    `долж(?:ен|на|но|ны)|нельзя|никогда|всегда|только|обязательно|предпочита\\p{L}*|избега\\p{L}*|запре[тщ]\\p{L}*`,
    `ни в коем случае|отныне|с этого момента|не позднее|не более|везде|важно,? чтобы`,
    `не (?:надо|нужно|хочу|хотим|\\p{L}+(?:й|йте|ьте|ите))|хотя бы|лучше`,
  ],
  [
    '必须|必須|务必|務必|不要|不得|不能|不可|不准|不许|禁止|从不|從不|永远|永遠|总是|總是|始终|只能|只用|仅|僅|千万|别|请勿|請勿',
    '一定要|优先|優先|更喜欢|不想|拒绝|拒絕|避免|应该|應該|至少|最多|从现在起|從現在起|无论如何|無論如何|最晚|不超过|不超過',
    '必ず|絶対|決して|常に|いつも|だけ|のみ|ないで|しないこと|べき|なければ|てはいけ|てはなら|避けて|ほうがいい|方がいい|今後は|これからは|以内',
  ],
);

/** A sentence that begins with "no" is a refusal. */
export const REFUSAL =
  /^(?:no|nope|nah|nein|non|não|нет|stop|wait,? no|don['’]?t|do not)(?![\p{L}\p{N}_])|^(?:不|别|いいえ|いや|ダメ|だめ)/iu;

export const PENDING = lexicon(
  [
    `fixme|to[- ]dos?:|next steps?|next,? (?:i|we)(?:['’]ll)?|(?:i|we)(?:['’]ll| will) (?:then|next|later)`,
    `still (?:to do|to be|need|needs|needed|have to|has to|missing|open|pending|outstanding|left)|left to do`,
    `remains? to|remaining(?: (?:tasks?|work|steps?|items?|issues?))?:|not yet|outstanding|follow[- ]?ups?`,
    `(?:please )?remind me to|(?:don['’]?t|do not) forget|needs? to be (?:done|fixed|added)|waiting (?:for|on)|blocked (?:by|on)|come back to`,
    `noch (?:zu tun|offen|nicht|nötig|machen|fehl\\p{L}*|ausstehend\\p{L}*)|fehlt noch|steh(?:t|en) noch aus|als nächstes`,
    `nächste[rn]? schritte?|müssen (?:wir )?noch|muss (?:ich )?noch|offene (?:punkte|fragen|aufgaben)`,
    `à faire|(?:il )?reste (?:à|encore)|prochaines? étapes?|ensuite,? (?:je|nous)|encore à|pas encore|en attente`,
    `por (?:hacer|fazer)|pendientes?|pendentes?|faltam?|faltan|próximos? pas[so]os?|siguientes? pasos?|a continuación`,
    `(?:todavía|aún) (?:falta\\p{L}*|hay que|no)|quedan? por|a fazer|em seguida|ainda (?:falta\\p{L}*|preciso|precisa\\p{L}*|não|temos)`,
    `da fare|resta da|rimane da|in sospeso|prossim[oi] pass[oi]|ancora da|non ancora|in attesa|(?:farò|faremo) poi`,
    `осталось|(?:ещё|еще) (?:надо|нужно|не|предстоит)|следующ\\p{L}+ шаг\\p{L}*|далее,? (?:я|мы)|предстоит|доделать`,
  ],
  [
    '待办|待辦|待处理|待處理|还需要|還需要|还要|還要|尚未|还没|還沒|下一步|接下来|接下來|剩下|未完成',
    '未完了|未対応|まだ|次に|次のステップ|次の作業|残りの|残って|やること|今後の',
  ],
);

export const OPEN_HEADING = lexicon(
  [
    `to[- ]?dos?|remaining|pending|next(?: steps?| up)?|still (?:open|to do|left)|open (?:items|tasks|points|issues|work|questions)`,
    `what['’]?s (?:left|next|missing)|left(?: to do)?|outstanding|not (?:yet )?(?:done|started|finished)|unfinished|backlog|in progress|follow[- ]?ups?|action items`,
    `offen\\p{L}*|ausstehend\\p{L}*|(?:noch )?zu (?:tun|erledigen)|nächste schritte|verbleibend\\p{L}*|es fehl(?:t|en)`,
    `(?:reste )?à faire|restant\\p{L}*|prochaines? étapes?|en (?:attente|cours)|pendientes?|por hacer|próximos pasos|falta\\p{L}*`,
    `pendentes?|por fazer|a fazer|próximos passos|da fare|prossimi passi|rimanent[ei]|in sospeso`,
    `остал\\p{L}+|следующие шаги|предстоит|не сделано|к выполнению`,
  ],
  ['待办|待辦|未完成|剩余|剩餘|下一步|接下来|接下來|还需|未完了|残り|次のステップ|やること|未対応'],
);

const DONE_WORDS = [
  `done|completed?|finished|closed|resolved|implemented|shipped|merged|erledigt|fertig|abgeschlossen|umgesetzt|behoben`,
  `fait(?:e?s)?|terminée?s?|achevée?s?|hech[oa]s?|completad[oa]s?|terminad[oa]s?|list[oa]s?|feit[oa]s?|concluíd[oa]s?`,
  `fatt[oaie]|completat[oaie]|finit[oaie]|готов[оаы]?|сделан[оаы]?|выполнен[оаы]?|завершен[оаы]?`,
];
const DONE_SIGNS = ['(?<!未)完成了?|完了|済み|搞定'];

export const DONE_HEADING = lexicon(DONE_WORDS, DONE_SIGNS);

/** A sentence that says that something is done. It must not match if something is still to be done or was not done. */
export const DONE = new RegExp(
  String.raw`^(?!.*[?？]$)(?!.*(?<![\p{L}])(?:not|n['’]t|until|once|when|if|should|must|will|to be|before|after|need|needs|nicht|noch|wenn|sobald|pas|quand|si|cuando|no|não|non|quando|se|не|когда|если)(?![\p{L}])).*(?:${DONE_HEADING.source})`,
  'isu',
);

/** Marks of open work. Case-sensitive, because `todo` is Spanish for "everything". */
export const TODO_MARK = /(?<![\p{L}\p{N}_])(?:TODO|TO-DO|FIXME|todo:|Todo:)/u;

export const DECISION = lexicon(
  [
    `decid(?:e|ed|ing)|decision|agreed|approved?|rejected|chose|chosen|settled on|(?:we|i)['’]ll go with|go(?:ing)? with|confirmed?`,
    `entschieden|entscheidung|beschlossen|einverstanden|décid\\p{L}*|décision|d['’]accord|decidi\\p{L}*|decisión|acordad[oa]|de acuerdo`,
    `decisão|combinado|decis[oi]\\p{L}*|d['’]accordo|реш(?:ил|ено|ение|или)\\p{L}*|договорились|согласен|согласны`,
  ],
  ['决定|決定|同意|确定|確定|选择了|選択|了解しました|承認'],
);

/** A stated goal: `Goal: …`, `our goal is …`, in the languages of the lexicon. */
export const GOAL =
  /(?:^|[\s"'*_>#-])(?:(?:the|my|our|your|new|main|overall|final|das|unser|mein|neues?|l['’]|notre|mon|el|nuestro|mi|o|nosso|meu|il|nostro)\s)?(?:goals?|objectives?|deadline|mission|ziele?|frist|objectifs?|but|objetivos?|meta|obiettiv[oi]|scopo|цель|задача)\*{0,2}(?:\s(?:now|here|jetzt|maintenant|ahora|agora|ora))?(?:\s?[:：=–—]|\s(?:is|are|remains|ist|lautet|est|es|é|è|будет)(?![\p{L}])|\s(?:bleibt)\s)|(?:目标|目標|任务|任務|目的|ゴール)(?:是|は|：|:)|(?<![\p{L}])(?:we|i) (?:need|want|have|must) to (?:ship|release|deliver|launch|finish|publish) \S.{0,80}(?<![\p{L}])(?:by|before|until|on) \S/iu;

const GREETING =
  /^(?:hi|hello|hey|hallo|guten (?:tag|morgen)|moin|servus|salut|bonjour|hola|buen[oa]s?(?: d[ií]as| tardes)?|olá|oi|bom dia|ciao|buongiorno|привет|здравствуйте|你好|您好|こんにちは|good (?:morning|afternoon|evening))(?:[\s,!.]+(?:there|all|everyone|team|zusammen|@?[\p{L}\p{N}_-]{1,24}))?[\s!.,。！]*$/iu;

const CHATTER =
  /^(?:(?:ok(?:ay|e)?|kk?|yes|yep|yeah|no+pe|sure|noted|got it|understood|acknowledged|roger|copy that|will do|on it|of course|you['’]re welcome|my pleasure|thanks?|thank you|thx|cheers|great|nice|cool|perfect|excellent|awesome|fine|good|right|alright|done|continue|go on|go ahead|proceed|please|hm+|ah|oh|lol|haha|wow|so|then|and|very much|a lot|for (?:that|now|the update)|notiert|vermerkt|erledigt|verstanden|gerne?|noté|compris|c['’]est fait|anotad[oa]|entendido|hecho|de nada|feito|annotato|capito|fatto|prego|принято|понял[ао]?|готово|сделано|ja|nein|gut|danke|alles klar|weiter|passt|super|merci|oui|d['’]accord|bien|gracias|vale|sí|listo|obrigad[oa]|sim|certo|grazie|va bene|sì|спасибо|да|хорошо|понятно|ладно)(?![\p{L}])[\s,.!…:;)(-]*)+$|^(?:好的?|谢谢|謝謝|明白了?|收到|已记录|记住了|完成|继续|はい|ありがとう(?:ございます)?|了解(?:です|しました)?|続けて)[\s。！!，,]*$/iu;
const MAX_CHATTER = 60;

export function isChatter(text: string): boolean {
  const words = text.trim();
  return words.length <= MAX_CHATTER && (CHATTER.test(words) || GREETING.test(words));
}

export function isGoalOrDemand(text: string): boolean {
  return GOAL.test(text) || CONSTRAINT.test(text) || REFUSAL.test(text);
}
