document.body.append('quotad');
